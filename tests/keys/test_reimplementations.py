"""Networks of other fields than pictures, in the words of two authors each: read by their words, and where one word is
exchanged for one of another meaning, asked about.

Names are those of public code: Real-ESRGAN and BasicSR, HiFi-GAN in its own, ParallelWaveGAN's and another's names,
NVIDIA's Tacotron 2, jadore801120's Transformer, RWKV, NCF, PointNet, spinning up's SAC, two towers.
"""

import re

import pytest
import torch

from inspector import apply_plan, diagnose


def linear(name, out, into, bias=True):
    return {f"{name}.weight": (out, into)} | ({f"{name}.bias": (out,)} if bias else {})


def conv(name, out, into, *kernel):
    return {f"{name}.weight": (out, into, *kernel), f"{name}.bias": (out,)}


def joined(*parts):
    return {name: shape for part in parts for name, shape in part.items()}


def esrgan():
    blocks = (conv(f"body.{b}.rdb{r}.conv{c}", 8, 8, 3, 3) for b in (0, 1) for r in (1, 2) for c in (1, 2))
    more = (conv(name, 8, 8, 3, 3) for name in ("conv_body", "conv_up1", "conv_up2", "conv_hr"))
    return joined(conv("conv_first", 8, 3, 3, 3), *blocks, *more, conv("conv_last", 3, 8, 3, 3))


def hifigan():
    ups = ({f"ups.{i}.weight": (a, b, 4), f"ups.{i}.bias": (b,)} for i, (a, b) in enumerate(((16, 8), (8, 4))))
    blocks = (
        conv(f"resblocks.{i}.convs{n}.{j}", c, c, 3) for i, c in enumerate((8, 4)) for n in (1, 2) for j in (0, 1)
    )
    return joined(conv("conv_pre", 16, 6, 7), *ups, *blocks, conv("conv_post", 1, 4, 7))


def tacotron():
    lstm = {
        f"encoder.lstm.{kind}_l0{way}": shape
        for way in ("", "_reverse")
        for kind, shape in (("weight_ih", (64, 32)), ("weight_hh", (64, 16)), ("bias_ih", (64,)), ("bias_hh", (64,)))
    }
    attention = (linear(f"decoder.attention_layer.{n}_layer.linear_layer", 16, 32, False) for n in ("query", "memory"))
    ends = linear("decoder.linear_projection.linear_layer", 80, 64), linear("decoder.gate_layer.linear_layer", 1, 64)
    return joined({"embedding.weight": (60, 32)}, lstm, *attention, *ends)


def transformer():
    made = [{"src_embed.weight": (100, 32), "tgt_embed.weight": (100, 32)}]
    for side, kinds in (("encoder", ["self_attn"]), ("decoder", ["self_attn", "cross_attn"])):
        for i in (0, 1):
            at = f"{side}.layers.{i}"
            made += [linear(f"{at}.{a}.{p}_proj", 32, 32) for a in kinds for p in ("q", "k", "v", "out")]
            made += [linear(f"{at}.fc1", 64, 32), linear(f"{at}.fc2", 32, 64)]
    return joined(*made, linear("generator", 100, 32))


def rwkv():
    made = [{"emb.weight": (50, 16)}]
    for i in (0, 1):
        made += [linear(f"blocks.{i}.att.{n}", 16, 16, False) for n in ("key", "value", "receptance", "output")]
        made += [{f"blocks.{i}.att.time_mix_{n}": (1, 1, 16)} for n in "kvr"]
        made += [linear(f"blocks.{i}.ffn.{n}", *shape, False) for n, shape in (("key", (32, 16)), ("value", (16, 32)))]
    return joined(*made, linear("head", 50, 16, False))


def ncf():
    tables = {f"embed_{who}_{net}.weight": (50, 8) for net in ("GMF", "MLP") for who in ("user", "item")}
    return joined(tables, linear("MLP_layers.1", 8, 16), linear("predict_layer", 1, 16))


def pointnet():
    made = [conv(f"feat.conv{n}", *shape, 1) for n, shape in ((1, (8, 3)), (2, (16, 8)), (3, (24, 16)))]
    return joined(*made, *(linear(f"fc{n}", *shape) for n, shape in ((1, (12, 24)), (2, (10, 12)), (3, (4, 10)))))


def sac():
    critics = (linear(f"critic{q}.net.{n}", o, i) for q in (1, 2) for n, o, i in ((0, 32, 23), (2, 32, 32), (4, 1, 32)))
    actor = (linear(f"actor.net.{n}", o, i) for n, o, i in ((0, 32, 17), (2, 32, 32)))
    return joined(*actor, linear("actor.mean", 6, 32), linear("actor.log_std", 6, 32), *critics)


def two_towers():
    layers = (("attn.q", 16, 16), ("attn.k", 16, 16), ("attn.v", 16, 16), ("fc1", 32, 16), ("fc2", 16, 32))
    return joined(
        *(linear(f"{t}_encoder.blocks.{i}.{n}", o, c) for t in ("image", "text") for i in (0, 1) for n, o, c in layers)
    )


def vae():
    middle = linear("fc_mu", 20, 40), linear("fc_logvar", 20, 40)
    return joined(linear("encoder.0", 40, 78), *middle, linear("decoder.0", 40, 20), linear("decoder.2", 78, 40))


def flow():
    nets = (
        linear(f"flows.{i}.{n}.fc{k}", 8, 8) for i in (0, 1) for n in ("scale_net", "translate_net") for k in (1, 2)
    )
    return joined(*nets, linear("prior_head", 4, 8))


def deep_q():
    parts = ((f"{who}.{n}", o, i) for who in ("critic1", "critic2") for n, o, i in (("fc1", 16, 9), ("fc2", 1, 16)))
    return joined(*(linear(*part) for part in parts), linear("actor.fc1", 16, 7), linear("actor.mean", 2, 16))


def cyclegan():
    return joined(*(conv(f"{net}.{n}", 6, 6, 3, 3) for net in ("netG", "netD") for n in ("stem", "body", "tail")))


CASES = {
    "flow": (flow, "scale_net=s translate_net=t"),
    "deep q": (deep_q, "critic1=q1 critic2=q2 actor.mean=actor.mu"),
    "deep q, layers": (deep_q, "critic1.fc=q1.l critic2.fc=q2.l actor.fc=policy.l actor.mean=policy.mu"),
    "cyclegan": (cyclegan, "netG=generator netD=discriminator"),
    "esrgan": (esrgan, "conv_body=trunk_conv body.=RRDB_trunk. rdb=RDB conv_up=upconv conv_hr=HRconv"),
    "hifigan": (hifigan, "conv_pre=input_conv conv_post=output_conv ups=upsamples resblocks=blocks"),
    "tacotron": (
        tacotron,
        "embedding.=embed. encoder.lstm=enc.lstm decoder.=dec. linear_layer=linear attention_layer=attention "
        "memory_layer=memory_proj query_layer=query_proj linear_projection=mel_proj gate_layer=stop_proj",
    ),
    "transformer": (
        transformer,
        "src_embed=encoder_embedding tgt_embed=decoder_embedding self_attn.q_proj=slf_attn.w_qs "
        "self_attn.k_proj=slf_attn.w_ks self_attn.v_proj=slf_attn.w_vs self_attn.out_proj=slf_attn.fc "
        "cross_attn.q_proj=enc_attn.w_qs cross_attn.k_proj=enc_attn.w_ks cross_attn.v_proj=enc_attn.w_vs "
        "cross_attn.out_proj=enc_attn.fc fc1=pos_ffn.w_1 fc2=pos_ffn.w_2 generator=trg_word_prj",
    ),
    "rwkv": (
        rwkv,
        "emb.=embeddings. att.=attention. ffn.=feed_forward. time_mix_k=time_mix_key time_mix_v=time_mix_value "
        "time_mix_r=time_mix_receptance",
    ),
    "ncf": (
        ncf,
        "embed_user_GMF=gmf_user_emb embed_item_GMF=gmf_item_emb embed_user_MLP=mlp_user_emb "
        "embed_item_MLP=mlp_item_emb MLP_layers=mlp predict_layer=out",
    ),
    "pointnet": (pointnet, "feat.conv=encoder.mlp"),
    "sac": (sac, "actor.=pi. critic1=qf1 critic2=qf2"),
    "two towers": (two_towers, "image_encoder=visual text_encoder=textual"),
    "vae": (vae, "fc_mu=mu fc_logvar=logvar"),
}


def in_other_words(shapes, pairs):
    """{the target's name: the file's}"""
    made = {}
    for name in shapes:
        other = name
        for pair in pairs.split():
            one, theirs = pair.split("=")
            other = other.replace(one, theirs)
        made[name] = other
    return made


def a_file(shapes, names):
    torch.manual_seed(0)
    return {names[name]: torch.randn(shape) for name, shape in shapes.items()}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("turned", [False, True], ids=["to", "from"])
def test_words_of_two_authors_are_read(case, turned, saved, target_of):
    make, pairs = CASES[case]
    names = in_other_words(make(), pairs)
    shapes = {names[n] if turned else n: shape for n, shape in make().items()}
    names = {theirs: ours for ours, theirs in names.items()} if turned else names
    file = a_file(shapes, names)
    for ordered in (True, False):
        listed = file if ordered else dict(sorted(file.items()))
        checkpoint = saved(listed, ordered=ordered)
        report = diagnose(checkpoint, target_of(shapes))
        assert report.plan is not None and report.plan.complete, report.says
        made = apply_plan(checkpoint, report.plan)
        assert all(torch.equal(made[name], file[names[name]]) for name in shapes)


# (network, a part of the file's names, what stands there instead): no two names of one part.
EXCHANGED = (
    ("flow", r"\.t\.", ".r."),
    ("deep q", "q2", "v2"),
    ("deep q, layers", "q2", "v2"),
    ("esrgan", "upconv", "downconv"),
    ("hifigan", "output_conv", "gate_conv"),
    ("tacotron", "memory_proj", "style_proj"),
    ("transformer", "enc_attn", "self_attn"),
    ("rwkv", "time_mix_receptance", "time_mix_query"),
    ("ncf", "gmf_user_emb", "gmf_cold_emb"),
    ("sac", "qf1", "reward1"),
    ("two towers", "visual", "audio"),
    ("vae", "logvar", "skew"),
)


@pytest.mark.parametrize(("case", "word", "other"), EXCHANGED, ids=[f"{c}-{o}" for c, _, o in EXCHANGED])
def test_a_word_of_another_meaning_is_asked_about(case, word, other, file_of, target_of):
    make, pairs = CASES[case]
    shapes = make()
    names = {name: re.sub(word, other, theirs) for name, theirs in in_other_words(shapes, pairs).items()}
    assert any(other in name for name in names.values())  # one of the network's names has it
    plan = diagnose(file_of({names[name]: shape for name, shape in shapes.items()}), target_of(shapes)).plan
    assert plan is None or not plan.complete


def annotated():
    """harvardnlp's Annotated Transformer: four layers in a list, and norms of its own."""
    made = [{"src_embed.0.lut.weight": (100, 32), "tgt_embed.0.lut.weight": (100, 32)}]
    for side, kinds in (("encoder", ["self_attn"]), ("decoder", ["self_attn", "src_attn"])):
        for i in (0, 1):
            at = f"{side}.layers.{i}"
            made += [linear(f"{at}.{a}.linears.{n}", 32, 32) for a in kinds for n in range(4)]
            made += [linear(f"{at}.feed_forward.w_1", 64, 32), linear(f"{at}.feed_forward.w_2", 32, 64)]
            norms = [f"{at}.sublayer.{n}.norm" for n in range(len(kinds) + 1)]
            made += [{f"{norm}.a_2": (32,), f"{norm}.b_2": (32,)} for norm in norms]
        made += [{f"{side}.norm.a_2": (32,), f"{side}.norm.b_2": (32,)}]
    return joined(*made, linear("generator.proj", 100, 32))


OF_THE_ANNOTATED = (
    (r"\.linears\.0", ".q_proj"),
    (r"\.linears\.1", ".k_proj"),
    (r"\.linears\.2", ".v_proj"),
    (r"\.linears\.3", ".out_proj"),
    (r"src_attn", "cross_attn"),
    (r"feed_forward\.w_", "fc"),
    (r"sublayer\.(\d)\.norm", lambda found: f"norm{int(found[1]) + 1}"),
    (r"a_2", "weight"),
    (r"b_2", "bias"),
    (r"_embed\.0\.lut", "_embed"),
    (r"generator\.proj", "generator"),
)


def test_more_orders_than_anybody_reads_are_one_question(saved, target_of):
    names = {}
    for theirs in annotated():
        name = theirs
        for pattern, word in OF_THE_ANNOTATED:
            name = re.sub(pattern, word, name)
        names[name] = theirs
    shapes = {name: annotated()[theirs] for name, theirs in names.items()}
    file = a_file(shapes, names)
    checkpoint = saved(file)
    (question,) = diagnose(checkpoint, target_of(shapes)).plan.ambiguities
    options = [option for option, _ in question.options]
    assert options == ["q_proj,k_proj,v_proj,out_proj", "leave-out"]
    plan = diagnose(checkpoint, target_of(shapes), choose={question.id: options[0]}).plan
    assert plan.complete
    made = apply_plan(checkpoint, plan)
    assert all(torch.equal(made[name], file[names[name]]) for name in shapes)
