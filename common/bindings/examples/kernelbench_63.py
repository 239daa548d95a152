"""KernelBench level 1, problem 63: 128 filters 3x3 on 16 channels of 1024x1024, without bias."""

import torch

from common.bindings.convladder import Conv2d


class ModelNew(torch.nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1,
                 groups=1, bias=False):
        super().__init__()
        self.conv2d = Conv2d(in_channels, out_channels, kernel_size, stride, padding, dilation,
                             groups, bias)

    def forward(self, x):
        return self.conv2d(x)


def get_inputs():
    return [torch.rand(16, 16, 1024, 1024)]


def get_init_inputs():
    return [16, 128, 3]
