"""A stage of your own, right from the start.

  ./ladder new 99_my_idea

makes the folder 99_my_idea with a kernel (stage 01's, under its new name), a README with the headings
of the others, and a line for CMake, which finds the folder by its digits. Then, for example:

  ./ladder check --stage 99_my_idea --shape alexnet_conv1
"""
import os
import re
import shutil

from common.show import files
from common.show.support import ROOT, fail, run_main

MODEL = "01_naive/naive.cu"
HEADER = """// Stage {number}: what changes against the stage before, in a sentence.
//
// Should drop: which counter, and to what.
// What hurts: what is left to do.
"""
README = """# {number} · {title}

## The idea

One sentence.

```sh
./ladder check --stage {name} --shape alexnet_conv1   # right?
./ladder profile --stage {name}                       # what it asks of memory; beside another: --stage, twice
./ladder test --stage {name}                          # the suite that every stage must pass
```

## What changed

Against the stage before: `./ladder diff {name}`.

## Who owns what

Which thread computes which outputs, and who fetches what.

## Measured

What you predicted, and what was counted.

## What limits now

## Try it
"""


def kernel(name, idea):
    """Stage 01's kernel as that of stage `name`; fails if stage 01 no longer has what is replaced."""
    text = files.read(os.path.join(ROOT, MODEL)).replace("conv2d_naive", f"conv2d_{idea}")
    longer = len(idea) - len("naive")  # the parameters stay one below the other
    text = re.sub(r"(?m)^ {20,}(?=const float|float)",
                  lambda indent: " " * max(4, len(indent.group()) + longer), text)
    for pattern, new in ((r"\A(//.*\n)+", HEADER.format(number=name[:2])),
                         (r'^CONVLADDER_REGISTER_STAGE\(\{"01_naive", "[^"]*"',
                          f'CONVLADDER_REGISTER_STAGE({{"{name}", "{idea.replace("_", " ")}"')):
        text, count = re.subn(pattern, lambda _, new=new: new, text, flags=re.MULTILINE)
        if count != 1:
            fail(f"{MODEL} has {count} places like '{pattern}', not one: new must follow it")
    return text


def main(arguments):
    if arguments in (["--help"], ["-h"]):
        print(__doc__.strip())
        return 0
    if len(arguments) != 1:
        fail("new needs a name, and nothing else: ./ladder new 99_my_idea", 2)
    name = arguments[0]
    if not re.fullmatch(r"[0-9]{2}_[a-z][a-z0-9_]{,39}", name):
        fail(f"new {name}: a name is two digits, its place, and words in lower case, 40 letters at most: "
             "99_my_idea", 2)
    number, idea = name[:2], name[3:]
    for stage in files.stage_names():
        if stage[:2] == number:  # the number alone shall name one
            fail(f"new {name}: there is {stage} already; 90 to 99 are a reader's own", 2)
    made = {f"{name}/{idea}.cu": kernel(name, idea),
            f"{name}/CMakeLists.txt": f"convladder_add_stage({name} {idea}.cu)\n",
            f"{name}/README.md": README.format(name=name, number=number,
                                               title=idea.replace("_", " ").capitalize())}
    if os.path.lexists(os.path.join(ROOT, name)):
        fail(f"new {name}: there is something in its place already", 2)
    os.mkdir(os.path.join(ROOT, name))
    try:
        for path, text in made.items():
            files.write(os.path.join(ROOT, path), text)
    except OSError:
        shutil.rmtree(os.path.join(ROOT, name))
        raise
    print(f"made {', '.join(made)}.\nIt is stage 01's kernel, and right. Next: ./ladder check --stage {name} "
          "--shape alexnet_conv1; docs/adding-a-stage.md has the rules")
    return 0


if __name__ == "__main__":
    run_main(main)
