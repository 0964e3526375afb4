"""Six models of the book as schematics, for the tests."""

from flbook.plots.schematic import (
    Schematic,
    across,
    bar,
    box,
    brace,
    curve,
    dots,
    encoder,
    matrix,
    op,
    out,
    stack,
    strip,
)

relu_heatmap = Schematic(
    "A two-layer convolutional network",
    [
        ("two patches", {"mu": strip(r"$y\mu$", "signal", "signal"), "xi": strip(r"$\xi$", "noise", "noise")}),
        ("filters", {"w+": stack(r"$w_{+1,r}$", r"for label $+1$"), "w-": stack(r"$w_{-1,r}$", r"for label $-1$")}),
        ("activation", {"s+": curve(r"$\sigma$", holds="relu"), "s-": curve(r"$\sigma$", holds="relu")}),
        ("mean over $r$", {"F+": op(r"$\Sigma$", r"$F_{+1}$"), "F-": op(r"$\Sigma$", r"$F_{-1}$")}),
        ("difference", {"minus": op(r"$-$")}),
        ("output", {"f": out(r"$f(W,x)$")}),
    ],
    ["mu xi >> w+ w-", "w+ w- > s+ s- > F+ F-", "F+ F- > minus > f"],
    says="Every filter meets both patches.",
)

mixture_of_experts = Schematic(
    "A mixture of experts with its router",
    [
        (
            "four patches",
            {
                "v": strip(r"$y\,\alpha\,v_k$", "signal", "signal"),
                "c": strip(r"$\beta\,c_k$", "centre", "context"),
                "v'": strip(r"$\epsilon\,\gamma\,v_{k'}$", "misleading", "-signal"),
                "xi": strip(r"$\xi$", "noise", "noise"),
            },
        ),
        ("", {"x": brace()}),
        ("sum", {"S": op(r"$\Sigma$", r"$S$", lane=-1.5)}),
        ("router", {"router": box(r"$\max_m\,\langle\theta_m,S\rangle+r_m$", holds="context", lane=-1.5)}),
        (
            "experts",
            {
                "f*": box(r"$f_{m^*}$", lane=0),
                "f1": box(r"$f_1$", faint=True, lane=0.9),
                "fM": box(r"$f_M$", faint=True, lane=1.8),
            },
        ),
        ("gate", {"times": op(r"$\times$", lane=0)}),
        ("output", {"F": out(r"$F(x)$", lane=0)}),
    ],
    ["x > S > router", "x >> f* f1 fM", "router ~> f* | $m^*$", "f* > times > F", "router > times | $g$"],
    says="The router scores the sum of the patches and asks one expert. The score is the gate.",
)

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

linear_attention = Schematic(
    "One layer of linear attention reads a prompt",
    [
        (
            "prompt",
            {
                "z1": strip(r"$x_1,\ y_1$", "", "grey*4 label*1"),
                "z2": strip(r"$x_2,\ y_2$", "", "grey*4 label*1"),
                "z.": dots(),
                "zn": strip(r"$x_n,\ y_n$", "", "grey*4 label*1"),
                "zq": strip(r"$x_q,\ ?$", "", "context*4 -label*1"),
            },
        ),
        ("query", {"G": box(r"$\Gamma$", holds="context", lane=2)}),
        (
            "inner product",
            {
                "k1": op(r"$\langle\,,\rangle$", lane=-2),
                "k2": op(r"$\langle\,,\rangle$", lane=-1),
                "kn": op(r"$\langle\,,\rangle$", lane=1),
            },
        ),
        (
            "weight",
            {
                "a1": bar(value=0.85, holds="context", lane=-2),
                "a2": bar(value=0.2, holds="context", lane=-1),
                "an": bar(value=0.5, holds="context", lane=1),
            },
        ),
        (
            "label",
            {
                "y1": op(r"$y_1$", holds="label", lane=-2),
                "y2": op(r"$y_2$", holds="label", lane=-1),
                "yn": op(r"$y_n$", holds="label", lane=1),
            },
        ),
        ("mean", {"sum": op(r"$\Sigma$", lane=-0.5)}),
        ("answer", {"y": out(r"$\hat y_q$", lane=-0.5)}),
    ],
    ["z1 z2 zn > k1 k2 kn > a1 a2 an > y1 y2 yn", "zq > G >> k1 k2 kn", "y1 y2 yn > sum > y"],
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
    relu_heatmap=relu_heatmap,
    mixture_of_experts=mixture_of_experts,
    contrastive=contrastive,
    linear_attention=linear_attention,
    token_selection=token_selection,
    denoiser=denoiser,
)
