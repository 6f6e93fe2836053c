"""What the case modules share: the register, random weights, renaming."""

import re
from collections import OrderedDict

import torch
from torch import nn

CASES = []  # (id, kind, source, function)


def case(kind, source):
    """The function gives (what is saved, target model, truth). truth: name -> tensor, a tuple of allowed tensors, or
    None where the place must stay untrained; truth itself None for a trap. `saver` on the result is not used."""

    def add(function):
        CASES.append((function.__name__, kind, source, function))
        return function

    return add


def shake(model, seed, *inputs, rounds=3):
    """Random weights as after training: norms near 1, biases near 0, statistics those of data where it can run."""
    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, p in model.named_parameters():
            r = torch.randn(p.shape, generator=g)
            if p.ndim <= 1:
                scale = "norm" in name or "bn" in name or "ln" in name or p.numel() and bool((p == 1).all())
                p.copy_(1 + 0.2 * r if name.endswith("weight") and scale else 0.1 * r)
            else:
                p.copy_(r / max(1, p[0].numel()) ** 0.5)
        for name, b in model.named_buffers():
            if name.endswith("running_mean"):
                b.copy_(0.3 * torch.randn(b.shape, generator=g))
            elif name.endswith("running_var"):
                b.copy_(0.5 + torch.rand(b.shape, generator=g))
            elif name.endswith("num_batches_tracked"):
                b.fill_(100 + seed)
        if inputs:
            model.train()
            norms = [m for m in model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
            for n in norms:
                n.reset_running_stats()
                n.momentum = None
            for _ in range(rounds):
                model(*[torch.randn(s, generator=g) for s in inputs])
            for n in norms:
                n.momentum = 0.1
    return model.eval()


def sd(model):
    return OrderedDict((k, v.detach().clone()) for k, v in model.state_dict().items())


def pair(make, seed, *inputs):
    """A trained model of what `make` builds, its tensors, and a fresh target."""
    model = shake(make(), seed, *inputs)
    torch.manual_seed(1000 + seed)
    return sd(model), make().eval()


def ren(state, *pairs):
    """Names by regular expressions, in turn."""
    out = OrderedDict()
    for k, v in state.items():
        for a, b in pairs:
            k = re.sub(a, b, k)
        assert k not in out, k
        out[k] = v
    return out


def pre(state, prefix):
    return OrderedDict((prefix + k, v) for k, v in state.items())


def drop(state, pattern):
    return OrderedDict((k, v) for k, v in state.items() if not re.search(pattern, k))


def untrained(state, pattern):
    return OrderedDict((k, None if re.search(pattern, k) else v) for k, v in state.items())


def rnd(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
