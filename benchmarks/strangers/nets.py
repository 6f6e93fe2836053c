"""Small networks, named after the habits of the libraries they stand for."""

import torch
import torch.nn.functional as F
from torch import nn


class SmallCNN(nn.Module):
    def __init__(self, classes=5, width=8, chans=3):
        super().__init__()
        self.conv1 = nn.Conv2d(chans, width, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, 2 * width, 3, padding=1)
        self.bn2 = nn.BatchNorm2d(2 * width)
        self.fc1 = nn.Linear(2 * width, 24)
        self.fc2 = nn.Linear(24, classes)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.relu(self.bn2(self.conv2(x)))
        return self.fc2(F.relu(self.fc1(x.mean((2, 3)))))


class Basic(nn.Module):
    def __init__(self, i, o, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(i, o, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(o)
        self.conv2 = nn.Conv2d(o, o, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(o)
        self.downsample = None
        if stride != 1 or i != o:
            self.downsample = nn.Sequential(nn.Conv2d(i, o, 1, stride, bias=False), nn.BatchNorm2d(o))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return F.relu(y + (x if self.downsample is None else self.downsample(x)))


class TinyResNet(nn.Module):
    """Named as torchvision's."""

    def __init__(self, classes=5, blocks=(2, 2, 2, 2), width=8, chans=3, stem=7):
        super().__init__()
        self.conv1 = nn.Conv2d(chans, width, stem, 2, stem // 2, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        i = width
        for n, b in enumerate(blocks):
            o = width * 2**n
            self.add_module(
                f"layer{n + 1}",
                nn.Sequential(*[Basic(i if j == 0 else o, o, 2 if j == 0 and n else 1) for j in range(b)]),
            )
            i = o
        self.n = len(blocks)
        self.fc = nn.Linear(i, classes) if classes else nn.Identity()

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        for n in range(self.n):
            x = getattr(self, f"layer{n + 1}")(x)
        return self.fc(x.mean((2, 3)))


class MLP(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.fc1 = nn.Linear(dim, hidden)
        self.fc2 = nn.Linear(hidden, dim)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x)))


class Attn(nn.Module):
    def __init__(self, dim, heads=2, bias=True):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=bias)
        self.proj = nn.Linear(dim, dim)


class VitBlock(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.attn = Attn(dim)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = MLP(dim, hidden)


class PatchEmbed(nn.Module):
    def __init__(self, dim, patch, chans=3):
        super().__init__()
        self.proj = nn.Conv2d(chans, dim, patch, patch)


class Vit(nn.Module):
    """Named as timm's."""

    def __init__(self, dim=24, depth=3, grid=4, patch=4, classes=5, hidden=96, cls=True, chans=3):
        super().__init__()
        if cls:
            self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos_embed = nn.Parameter(torch.zeros(1, grid * grid + cls, dim))
        self.patch_embed = PatchEmbed(dim, patch, chans)
        self.blocks = nn.Sequential(*[VitBlock(dim, hidden) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, classes) if classes else nn.Identity()


class SplitAttn(nn.Module):
    """q_proj, k_proj, v_proj, out_proj as in fairseq and transformers."""

    def __init__(self, dim, kv=None, bias=True, names=("q_proj", "k_proj", "v_proj", "out_proj"), inner=None):
        super().__init__()
        inner = inner or dim
        kv = kv or inner
        for n, (i, o) in zip(names, ((dim, inner), (dim, kv), (dim, kv), (inner, dim))):
            self.add_module(n, nn.Linear(i, o, bias=bias))


class EncLayer(nn.Module):
    def __init__(self, dim=24, hidden=96):
        super().__init__()
        self.self_attn = SplitAttn(dim)
        self.layer_norm1 = nn.LayerNorm(dim)
        self.mlp = MLP(dim, hidden)
        self.layer_norm2 = nn.LayerNorm(dim)


class HFClipVision(nn.Module):
    def __init__(self, dim=24, depth=2, grid=4, patch=4):
        super().__init__()
        self.vision_model = nn.Module()
        v = self.vision_model
        v.embeddings = nn.Module()
        v.embeddings.class_embedding = nn.Parameter(torch.zeros(dim))
        v.embeddings.patch_embedding = nn.Conv2d(3, dim, patch, patch, bias=False)
        v.embeddings.position_embedding = nn.Embedding(grid * grid + 1, dim)
        v.pre_layrnorm = nn.LayerNorm(dim)
        v.encoder = nn.Module()
        v.encoder.layers = nn.ModuleList([EncLayer(dim, 4 * dim) for _ in range(depth)])
        v.post_layernorm = nn.LayerNorm(dim)


class GptBlock(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.ln_1 = nn.LayerNorm(dim)
        self.attn = nn.Module()
        self.attn.c_attn = nn.Linear(dim, 3 * dim)
        self.attn.c_proj = nn.Linear(dim, dim)
        self.ln_2 = nn.LayerNorm(dim)
        self.mlp = nn.Module()
        self.mlp.c_fc = nn.Linear(dim, 4 * dim)
        self.mlp.c_proj = nn.Linear(4 * dim, dim)


class NanoGpt(nn.Module):
    def __init__(self, dim=24, depth=2, vocab=61, block=32, tie=True):
        super().__init__()
        self.transformer = nn.ModuleDict(
            dict(
                wte=nn.Embedding(vocab, dim),
                wpe=nn.Embedding(block, dim),
                h=nn.ModuleList([GptBlock(dim) for _ in range(depth)]),
                ln_f=nn.LayerNorm(dim),
            )
        )
        self.lm_head = nn.Linear(dim, vocab, bias=False)
        if tie:
            self.transformer.wte.weight = self.lm_head.weight


class RMS(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))


class HFLlama(nn.Module):
    def __init__(self, dim=32, depth=2, vocab=53, kv=None, hidden=80, tie=False):
        super().__init__()
        self.model = nn.Module()
        self.model.embed_tokens = nn.Embedding(vocab, dim)
        self.model.layers = nn.ModuleList()
        for _ in range(depth):
            l = nn.Module()
            l.self_attn = SplitAttn(dim, kv, bias=False, names=("q_proj", "k_proj", "v_proj", "o_proj"))
            l.mlp = nn.Module()
            l.mlp.gate_proj = nn.Linear(dim, hidden, bias=False)
            l.mlp.up_proj = nn.Linear(dim, hidden, bias=False)
            l.mlp.down_proj = nn.Linear(hidden, dim, bias=False)
            l.input_layernorm = RMS(dim)
            l.post_attention_layernorm = RMS(dim)
            self.model.layers.append(l)
        self.model.norm = RMS(dim)
        self.lm_head = nn.Linear(dim, vocab, bias=False)
        if tie:
            self.lm_head.weight = self.model.embed_tokens.weight


class HFBert(nn.Module):
    def __init__(self, dim=24, depth=2, vocab=47, pos=20, hidden=96, pooler=True):
        super().__init__()
        self.embeddings = nn.Module()
        e = self.embeddings
        e.word_embeddings = nn.Embedding(vocab, dim)
        e.position_embeddings = nn.Embedding(pos, dim)
        e.token_type_embeddings = nn.Embedding(2, dim)
        e.LayerNorm = nn.LayerNorm(dim)
        self.encoder = nn.Module()
        self.encoder.layer = nn.ModuleList()
        for _ in range(depth):
            l = nn.Module()
            l.attention = nn.Module()
            l.attention.self = nn.Module()
            for n in ("query", "key", "value"):
                l.attention.self.add_module(n, nn.Linear(dim, dim))
            l.attention.output = nn.Module()
            l.attention.output.dense = nn.Linear(dim, dim)
            l.attention.output.LayerNorm = nn.LayerNorm(dim)
            l.intermediate = nn.Module()
            l.intermediate.dense = nn.Linear(dim, hidden)
            l.output = nn.Module()
            l.output.dense = nn.Linear(hidden, dim)
            l.output.LayerNorm = nn.LayerNorm(dim)
            self.encoder.layer.append(l)
        if pooler:
            self.pooler = nn.Module()
            self.pooler.dense = nn.Linear(dim, dim)


class BertHead(nn.Module):
    def __init__(self, classes=3, **k):
        super().__init__()
        self.bert = HFBert(**k)
        self.classifier = nn.Linear(24, classes)


def double(i, o):
    return nn.Sequential(
        nn.Conv2d(i, o, 3, padding=1, bias=False),
        nn.BatchNorm2d(o),
        nn.ReLU(),
        nn.Conv2d(o, o, 3, padding=1, bias=False),
        nn.BatchNorm2d(o),
        nn.ReLU(),
    )


class DoubleConv(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.double_conv = double(i, o)

    def forward(self, x):
        return self.double_conv(x)


class Down(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.maxpool_conv = nn.Sequential(nn.MaxPool2d(2), DoubleConv(i, o))

    def forward(self, x):
        return self.maxpool_conv(x)


class Up(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.up = nn.ConvTranspose2d(i, i // 2, 2, 2)
        self.conv = DoubleConv(i, o)

    def forward(self, a, b):
        return self.conv(torch.cat([b, self.up(a)], 1))


class OutConv(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.conv = nn.Conv2d(i, o, 1)

    def forward(self, x):
        return self.conv(x)


class UNet(nn.Module):
    """milesial's Pytorch-UNet, narrow."""

    def __init__(self, chans=3, classes=2, w=4):
        super().__init__()
        self.inc = DoubleConv(chans, w)
        self.down1, self.down2 = Down(w, 2 * w), Down(2 * w, 4 * w)
        self.up1, self.up2 = Up(4 * w, 2 * w), Up(2 * w, w)
        self.outc = OutConv(w, classes)

    def forward(self, x):
        a = self.inc(x)
        b = self.down1(a)
        c = self.down2(b)
        return self.outc(self.up2(self.up1(c, b), a))


class LstmLM(nn.Module):
    """pytorch/examples word_language_model."""

    def __init__(self, vocab=41, dim=12, hidden=16, layers=2, cls=nn.LSTM):
        super().__init__()
        self.encoder = nn.Embedding(vocab, dim)
        self.rnn = cls(dim, hidden, layers)
        self.decoder = nn.Linear(hidden, vocab)


class SdRes(nn.Module):
    """A resnet block of diffusers."""

    def __init__(self, i, o, t):
        super().__init__()
        self.norm1 = nn.GroupNorm(2, i)
        self.conv1 = nn.Conv2d(i, o, 3, padding=1)
        self.time_emb_proj = nn.Linear(t, o)
        self.norm2 = nn.GroupNorm(2, o)
        self.conv2 = nn.Conv2d(o, o, 3, padding=1)
        if i != o:
            self.conv_shortcut = nn.Conv2d(i, o, 1)


class ConvBN(nn.Module):
    """Conv of YOLOv5 and its like."""

    def __init__(self, i, o, k=3, s=1):
        super().__init__()
        self.conv = nn.Conv2d(i, o, k, s, k // 2, bias=False)
        self.bn = nn.BatchNorm2d(o)

    def forward(self, x):
        return F.silu(self.bn(self.conv(x)))


class Bottle(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.cv1 = ConvBN(c, c, 1)
        self.cv2 = ConvBN(c, c, 3)

    def forward(self, x):
        return x + self.cv2(self.cv1(x))


class C3(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.cv1 = ConvBN(c, c // 2, 1)
        self.cv2 = ConvBN(c, c // 2, 1)
        self.cv3 = ConvBN(c, c, 1)
        self.m = nn.Sequential(Bottle(c // 2))

    def forward(self, x):
        return self.cv3(torch.cat([self.m(self.cv1(x)), self.cv2(x)], 1))


class Yolo(nn.Module):
    def __init__(self, classes=3):
        super().__init__()
        self.model = nn.Sequential(
            ConvBN(3, 8, 3, 2), C3(8), ConvBN(8, 16, 3, 2), C3(16), nn.Conv2d(16, 5 + classes, 1)
        )

    def forward(self, x):
        return self.model(x)


class Vae(nn.Module):
    def __init__(self, i=30, h=20, z=4):
        super().__init__()
        self.fc1 = nn.Linear(i, h)
        self.fc21 = nn.Linear(h, z)
        self.fc22 = nn.Linear(h, z)
        self.fc3 = nn.Linear(z, h)
        self.fc4 = nn.Linear(h, i)


def of(**modules):
    """A module that holds these under these names; dots nest."""
    root = nn.Module()
    for path, m in modules.items():
        at = root
        *way, last = path.split("__")
        for w in way:
            if w not in dict(at.named_children()):
                at.add_module(w, nn.Module())
            at = getattr(at, w)
        if isinstance(m, nn.Parameter):
            at.register_parameter(last, m)
        elif isinstance(m, torch.Tensor):
            at.register_buffer(last, m)
        else:
            at.add_module(last, m)
    return root


L, C, N, E = nn.Linear, nn.Conv2d, nn.LayerNorm, nn.Embedding
