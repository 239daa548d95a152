"""KernelBench level 1, problem 50: AlexNet's first layer, batch 256."""

import torch

from common.bindings.convladder import Conv2d


class ModelNew(torch.nn.Module):
    def __init__(self, num_classes=1000):
        super().__init__()
        self.conv1 = Conv2d(in_channels=3, out_channels=96, kernel_size=11, stride=4, padding=2)

    def forward(self, x):
        return self.conv1(x)


def get_inputs():
    return [torch.rand(256, 3, 224, 224)]


def get_init_inputs():
    return [1000]
