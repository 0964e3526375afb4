"""Pictures of this lecture: its network, with cluster and noise in two patches or in one."""

from flbook.plots.schematic import Schematic, curve, op, out, stack, strip

MODEL = Schematic(
    "A two-layer convolutional network on four clusters",
    [
        (
            "patches",
            {
                "c": strip("$c$", "cluster", "signal", alt="the cluster, c"),
                "xi": strip(r"$\xi$", "noise", "noise", alt="the noise, xi"),
                "x": strip(r"$c+\xi$", "inside", "signal+noise", alt="or the sum of both in one patch"),
            },
        ),
        (
            "filters",
            {
                "w+": stack(r"$w_{+1,r}$", r"for label $+1$", alt="those for the label +1"),
                "w-": stack(r"$w_{-1,r}$", r"for label $-1$", alt="those for the label -1"),
            },
        ),
        (
            "activation",
            {
                "s+": curve(r"$\sigma$", holds="relu", alt="ReLU"),
                "s-": curve(r"$\sigma$", holds="relu", alt="ReLU"),
            },
        ),
        (
            "mean over $r$",
            {
                "F+": op(r"$\Sigma$", r"$F_{+1}$", alt="of the filters for +1"),
                "F-": op(r"$\Sigma$", r"$F_{-1}$", alt="of the filters for -1"),
            },
        ),
        ("difference", {"minus": op(r"$-$", alt="the first mean minus the second")}),
        ("output", {"f": out(r"$f(x)$", alt="f(x)")}),
    ],
    ["c xi >> w+ w-", "x ~> w+", "x ~> w-", "w+ w- > s+ s- > F+ F-", "F+ F- > minus > f"],
    says="Every filter meets the cluster and the noise, either each in a patch of its own or their sum.",
)
