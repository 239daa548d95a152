"""A small network trained on scikit-learn's digits (1,797 images of 8 x 8), with the ladder's convolutions
and with PyTorch's, side by side: the same first weights, the same batches.

  python3 -m common.bindings.examples.digits [--steps N] [--stage NAME] [--data digits.csv.gz] [--plot FILE]

On a GPU where the library is for one, else in the simulator. Prints the losses of both, by how much they
differ at most, and how many of the images held back each names right. Status 1 where they differ by more
than 1e-4.
--data: the file that scikit-learn keeps its digits in, where it isn't installed itself.
"""

import argparse
import copy
import sys
import time

try:
    import numpy
    import torch
except ModuleNotFoundError as error:
    sys.exit(f"digits: error: {error.name} is not installed: pip install numpy torch")

from common.bindings import convladder

BATCH, HELD_BACK, ALLOWED = 16, 297, 1e-4


def network():
    """All that a convolution can be asked for: a stride, groups (depthwise), 1 x 1, bias, and none."""
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 8, 3, padding=1), torch.nn.ReLU(),
        torch.nn.Conv2d(8, 16, 3, stride=2, padding=1), torch.nn.ReLU(),
        torch.nn.Conv2d(16, 16, 3, padding=1, groups=16, bias=False), torch.nn.Conv2d(16, 32, 1),
        torch.nn.ReLU(),
        torch.nn.Flatten(), torch.nn.Linear(32 * 4 * 4, 10),
    )


def with_stage(model, stage):
    """A copy of the model, its convolutions computed by the stage."""
    model = copy.deepcopy(model)
    for i, layer in enumerate(model):
        if isinstance(layer, torch.nn.Conv2d):
            model[i] = convladder.Conv2d.from_torch(layer, stage)
    return model


def read_digits(path, device):
    """Images from 0 to 1, [N,1,8,8], and what they show."""
    if path:
        rows = numpy.loadtxt(path, delimiter=",")
        images, labels = rows[:, :-1], rows[:, -1]
    else:
        from sklearn.datasets import load_digits  # an example's need alone

        images, labels = load_digits(return_X_y=True)
    images = torch.tensor(images / 16, dtype=torch.float32, device=device).view(-1, 1, 8, 8)
    return images, torch.tensor(labels, dtype=torch.long, device=device)


def train(model, images, labels, steps):
    """The loss of each step. The batches are the same for each model."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    batches, losses = torch.Generator().manual_seed(1), []
    for _ in range(steps):
        chosen = torch.randint(len(images) - HELD_BACK, (BATCH,), generator=batches).to(images.device)
        loss = torch.nn.functional.cross_entropy(model(images[chosen]), labels[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return [loss.item() for loss in losses]


@torch.no_grad()
def share_right(model, images, labels):
    return (model(images[-HELD_BACK:]).argmax(1) == labels[-HELD_BACK:]).float().mean().item()


def plot(path, ours, theirs):
    from matplotlib import pyplot  # where a plot is asked for

    figure, (above, below) = pyplot.subplots(2, 1, sharex=True, figsize=(7, 5))
    above.plot(theirs, label="PyTorch", linewidth=3, color="0.75")
    above.plot(ours, label="ConvLadder", linewidth=1, color="C0")
    above.set_ylabel("loss")
    above.legend()
    below.semilogy([max(abs(a - b), 1e-9) for a, b in zip(ours, theirs)], color="C0")
    below.set_ylabel("difference")
    below.set_xlabel("step")
    figure.tight_layout()
    figure.savefig(path)


def main(words):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--stage", help="default: auto; in the simulator one that takes it less time")
    parser.add_argument("--data", default="")
    parser.add_argument("--plot", default="")
    options = parser.parse_args(words)
    device, stage = ("cuda", "auto") if convladder.backend() == "gpu" else ("cpu", "05_fused_bias")
    stage = options.stage or stage
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    images, labels = read_digits(options.data, device)
    torch.manual_seed(1)
    theirs = network().to(device)
    ours = with_stage(theirs, stage)
    losses, seconds = [], []
    for model in (ours, theirs):
        begin = time.perf_counter()
        losses.append(train(model, images, labels, options.steps))
        seconds.append(time.perf_counter() - begin)
    print("step  ConvLadder  PyTorch")
    for step in sorted({*range(0, options.steps, max(1, options.steps // 10)), options.steps - 1}):
        print(f"{step + 1:4}  {losses[0][step]:10.6f}  {losses[1][step]:.6f}")
    difference = max(abs(a - b) for a, b in zip(*losses))
    print(f"largest difference of the losses: {difference:.2g}")
    print("right of the images held back: "
          + ", ".join(f"{100 * share_right(model, images, labels):.1f} %" for model in (ours, theirs)))
    print(f"seconds: {seconds[0]:.1f} ({stage}, {convladder.backend()}), {seconds[1]:.1f} (PyTorch)")
    if options.plot:
        plot(options.plot, *losses)
        print(f"wrote {options.plot}")
    return 0 if difference <= ALLOWED else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
