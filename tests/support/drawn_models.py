"""Schematics for the tests: those of the lectures, and three that have what no lecture's has yet."""

from flbook.lectures.benign_overfitting.relu_heatmap import overfitting_pictures
from flbook.lectures.benign_overfitting.xor import xor_pictures
from flbook.lectures.in_context_learning.linear_attention import attention_pictures
from flbook.lectures.training_strategies.mixture_of_experts import mixture_of_experts_pictures
from flbook.plots.schematic import Schematic, across, bar, dots, encoder, matrix, op, out, stack, strip

labels = "+-+--"
contrastive = Schematic(
    "Contrastive learning with two modalities",
    [
        (
            "pairs",
            {
                "x": strip(r"$x_i$", "picture", "signal*3 noise*3"),
                "t": strip(r"$\tilde x_i$", "caption", "signal*3 noise*3"),
            },
        ),
        ("encoders", {"h": encoder(r"$w_r$"), "g": encoder(r"$\tilde w_r$")}),
        ("features", {"hx": stack(r"$h_r(x_i)$"), "gx": stack(r"$g_r(\tilde x_i)$")}),
        (
            "similarities",
            {
                "sim": matrix(
                    r"$\mathrm{Sim}(x_i,\tilde x_j)$",
                    "partners, negatives",
                    " ".join(
                        "".join("c" if i == j else "g" if a != b else "." for j, b in enumerate(labels))
                        for i, a in enumerate(labels)
                    ),
                )
            },
        ),
        ("loss", {"L": out("InfoNCE")}),
    ],
    ["x t > h g > hx gx", "hx gx > sim > L"],
)

token_selection = Schematic(
    "One query chooses a token",
    [
        (
            "tokens",
            {
                "x1": strip(r"$x_1=\mu_y+\xi_1$", "", "signal+noise"),
                "x2": strip(r"$x_2=\varrho\mu_y+\xi_2$", "", "signal+noise*1 noise*5"),
                "x3": strip(r"$x_3=\varrho\mu_{-y}+\xi_3$", "", "-signal*1 noise*5"),
                "x4": strip(r"$x_4=\xi_4$", "", "noise"),
                "x.": dots(),
                "xL": strip(r"$x_L=\xi_L$", "", "noise"),
            },
        ),
        ("attention", {"soft": across(r"softmax$_\ell\ \langle u,x_\ell\rangle$")}),
        (
            "weights",
            {
                "s1": bar(value=0.9, holds="signal", lane=-2.5),
                "s2": bar(value=0.15, lane=-1.5),
                "s3": bar(value=0.1, lane=-0.5),
                "s4": bar(value=0.12, lane=0.5),
                "sL": bar(value=0.07, lane=2.5),
            },
        ),
        ("mean", {"sum": op(r"$\Sigma$", r"$\Sigma_\ell\,s_\ell x_\ell$")}),
        ("head", {"nu": strip(r"$\nu$", "fixed", "signal*3 -signal*3")}),
        ("output", {"f": out(r"$f(X)$")}),
    ],
    ["x1 x2 x3 x4 xL > soft > s1 s2 s3 s4 sL > sum > nu > f"],
)

clean = "SSSSSSSS SSssssSS SSSSSssS SSSsssSS SSSSSssS SSSSSssS SSssssSS SSSSSSSS"
noise = " ".join(["n" * 8] * 8)
denoiser = Schematic(
    "A denoiser and its loss",
    [
        (
            "drawn",
            {"x0": matrix(r"$x_0$", "picture", clean, lane=0), "eps": matrix(r"$\epsilon$", "noise", noise, lane=1)},
        ),
        ("mixed", {"plus": op("$+$", lane=0)}),
        ("noisy", {"xt": matrix(r"$x_t$", "step $t$", clean.replace("S", "n"), lane=0)}),
        ("network", {"net": encoder(r"$f_W$", lane=0)}),
        ("its guess", {"hat": matrix(r"$f_W(x_t,t)$", "", noise, lane=0)}),
        ("loss", {"L": out(r"$\frac{1}{d}\,\|f_W-\epsilon\|^2$", lane=0)}),
    ],
    [
        r"x0 > plus | $\sqrt{\bar\alpha_t}$",
        r"eps > plus | $\sqrt{1-\bar\alpha_t}$",
        "plus > xt > net > hat > L",
        "eps > L",
    ],
)

MODELS = dict(
    relu_heatmap=overfitting_pictures.MODEL,
    xor=xor_pictures.MODEL,
    mixture_of_experts=mixture_of_experts_pictures.MODEL,
    linear_attention=attention_pictures.MODEL,
    contrastive=contrastive,
    token_selection=token_selection,
    denoiser=denoiser,
)
