"""Rows of the usual layers, in the order of torch's own state dicts."""

from __future__ import annotations

from inspector.architectures.families.entry import Part, Row, Size


def linear(name: str, out: Size, inner: Size, *, bias: bool = True) -> tuple[Part, ...]:
    """nn.Linear."""
    return (Row(f"{name}.weight", (out, inner)), *bias_of(name, out, bias))


def conv(name: str, out: Size, inner: Size, *kernel: Size, bias: bool = False) -> tuple[Part, ...]:
    """nn.Conv1d to nn.Conv3d. inner: input channels per group. kernel: one size stands for a square."""
    sizes = kernel * 2 if len(kernel) == 1 else kernel
    return (Row(f"{name}.weight", (out, inner, *sizes)), *bias_of(name, out, bias))


def norm(name: str, width: Size) -> tuple[Part, ...]:
    """nn.LayerNorm and nn.GroupNorm."""
    return Row(f"{name}.weight", (width,)), Row(f"{name}.bias", (width,))


def batch_norm(name: str, width: Size) -> tuple[Part, ...]:
    """nn.BatchNorm1d to nn.BatchNorm3d."""
    return (
        *norm(name, width),
        Row(f"{name}.running_mean", (width,), is_buffer=True),
        Row(f"{name}.running_var", (width,), is_buffer=True),
        Row(f"{name}.num_batches_tracked", (), "int64", is_buffer=True),
    )


def bias_of(name: str, width: Size, there: bool = True) -> tuple[Part, ...]:
    """A bias, or nothing."""
    return (Row(f"{name}.bias", (width,)),) if there else ()
