r"""Real images as the signal patch: an image that carries the label, beside a patch of pure noise.

.. math:: x = [y\mu + u, \xi], \qquad \xi \sim N(0, \sigma_\xi^2 I)

An image of one of two classes, the mean image taken away, is half the difference of the class means, :math:`\mu`,
signed by the label, plus what makes this image differ from its class, u. `flbook.data.signal_noise` is the case u = 0.

Differs from Cao et al. (2022): the first patch varies within a class, and its distribution is not known.
"""

import math
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from flbook import rng
from flbook.data import ten_digits
from flbook.data.signal_noise import flipped_labels
from flbook.domains import Checked, Count, FlipProbability, Positive, Range, require

CIFAR10_URL = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
CIFAR10_MD5 = "c32a1d4ab5d03f1284b67883e8d87530"
CIFAR10_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
CIFAR10_ROW = 1 + 3 * 32 * 32  # bytes of one image: its class, then the red, the green and the blue plane


class Images(NamedTuple):
    """Images of two classes."""

    pixels: Float[Tensor, "N ..."]  # brightness in [0, 1]; a picture is (rows, columns) or (3, rows, columns)
    y: Float[Tensor, " N"]  # +1 for the first class, -1 for the second


class ImageSample(NamedTuple):
    """Data of `ImageNoise`, the hidden truth beside what is observed."""

    x: Float[Tensor, "*E n 2 d"]  # patches [y mu + u, xi], the input of a network
    observed: Float[Tensor, "*E n"]  # labels to train on
    y: Float[Tensor, "*E n"]  # true labels
    mu: Float[Tensor, " d"]  # signal: half the difference of the class means
    images: Float[Tensor, "*E n d"]  # image patches y mu + u
    xi: Float[Tensor, "*E n d"]  # noise patches


class Moments(NamedTuple):
    """How images differ from their class mean: the covariance S of u, in units of mu."""

    along: float  # v_1 = mu' S mu / |mu|^4
    total: float  # v_2 = tr S / |mu|^2
    square: float  # v_3 = tr S^2 / |mu|^4


@dataclass(frozen=True, eq=False)
class ImageNoise(Checked):
    r"""Real images, each beside a noise patch of the same size, at a chosen signal-to-noise ratio.

    All images are multiplied by one factor, such that :math:`\|\mu\| = \mathrm{SNR}\,\sigma_\xi\sqrt d`.

    Attributes
    ----------
    images
        Of two classes.
    n
        Training samples, both classes equally often; the smaller class has to leave an image to test on.
    snr
        Signal-to-noise ratio :math:`\|\mu\|/(\sigma_\xi\sqrt d)`.
    sigma_xi
        Standard deviation of a noise coordinate.
    flip_prob
        Share p of labels observed flipped, exactly round(pn) of them, in [0, 1/2).

    Raises
    ------
    ValueError
        If a field is outside its domain, or there are too few images.

    Examples
    --------
    >>> data = ImageNoise(digits(), n=10)
    >>> data.d, data.draw(seed=0).x.shape
    (64, torch.Size([10, 2, 64]))
    """

    images: Images
    n: Annotated[int, Range(2)] = 40
    snr: Positive = 0.1
    sigma_xi: Positive = 1.0
    flip_prob: FlipProbability = 0.0

    def __post_init__(self):
        super().__post_init__()
        smallest = min(int((self.images.y == sign).sum()) for sign in (1, -1))
        if self.n >= 2 * smallest:
            raise ValueError(f"n must lie between 2 and {2 * smallest - 1}, so that the smaller class, {smallest} "
                             f"images, leaves one to test on; got {self.n}")

    @property
    def d(self) -> int:
        """Dimension of a patch: the number of brightness values of an image.

        Returns
        -------
        int
            Rows times columns, times 3 in colour.
        """
        return math.prod(self.images.pixels.shape[1:])

    @cached_property
    def patches(self) -> Float[Tensor, "N d"]:
        """All image patches, in float64: flattened, the mean image taken away, scaled to the SNR.

        Returns
        -------
        Tensor
            Shape ``(N, d)`` for N images.
        """
        centred = self.images.pixels.double().flatten(1)
        centred = centred - centred.mean(0)
        mu_norm = self.snr * self.sigma_xi * math.sqrt(self.d)
        return centred * (mu_norm / half_difference(centred, self.images.y).norm())

    @property
    def mu(self) -> Float[Tensor, " d"]:
        """The signal: half the difference of the two class means.

        Returns
        -------
        Tensor
            Shape ``(d,)``.
        """
        return half_difference(self.patches, self.images.y)

    @property
    def moments(self) -> Moments:
        """How much the images of a class differ; it depends on neither the SNR nor how far pictures are enlarged.

        Returns
        -------
        Moments
            The numbers :math:`v_1`, :math:`v_2` and :math:`v_3`.
        """
        u, mu_mu = self.patches - self.images.y[:, None] * self.mu, self.mu @ self.mu
        gram = u @ u.T / len(u)
        along = (u @ self.mu).square().mean() / mu_mu**2
        return Moments(float(along), float(gram.trace() / mu_mu), float(gram.square().sum() / mu_mu**2))

    def split(self, seed: int) -> tuple[Tensor, Tensor]:
        """Places of the training images, classes taking turns as their labels do, and of all the others.

        Parameters
        ----------
        seed
            Seed of the order in which images are taken.

        Returns
        -------
        tuple[Tensor, Tensor]
            Shapes ``(n,)`` and ``(N - n,)``.
        """
        generator = rng.generator(seed, "images")
        shuffled = [_shuffle(torch.nonzero(self.images.y == sign)[:, 0], generator) for sign in (1, -1)]
        train = torch.stack([shuffled[i % 2][i // 2] for i in range(self.n)])
        rest = torch.cat([shuffled[0][(self.n + 1) // 2 :], shuffled[1][self.n // 2 :]])
        return train, rest

    def draw(self, seed: int | tuple[int, ...] = 0) -> ImageSample:
        """A training sample in float64 on the CPU.

        Parameters
        ----------
        seed
            One seed, or a tuple of seeds, which gives one leading ensemble axis.

        Returns
        -------
        ImageSample
            The n samples, ``x`` of shape ``(*E, n, 2, d)``.
        """
        return self._sample(seed, test=False)

    def draw_test(self, seed: int | tuple[int, ...] = 0) -> ImageSample:
        """Every image that `draw` with this seed leaves out, beside fresh noise, with its true label.

        Parameters
        ----------
        seed
            One seed, or a tuple of seeds, which gives one leading ensemble axis.

        Returns
        -------
        ImageSample
            The other N - n images, ``x`` of shape ``(*E, N - n, 2, d)``.
        """
        return self._sample(seed, test=True)

    def fresh_noise(self, points: int, seed: int | tuple[int, ...] = 0) -> Float[Tensor, "*E points d"]:
        """Noise patches that no sample holds.

        Parameters
        ----------
        points
            Number of patches.
        seed
            One seed, or a tuple of seeds, which gives one leading ensemble axis.

        Returns
        -------
        Tensor
            Shape ``(*E, points, d)``.
        """
        return self.sigma_xi * rng.normal((points, self.d), seed, "fresh noise")

    def _sample(self, seed: int | tuple[int, ...], test: bool) -> ImageSample:
        if isinstance(seed, tuple | list | range):
            parts = zip(*(self._sample(one, test) for one in seed), strict=True)
            return ImageSample(*(torch.stack(part) for part in parts))._replace(mu=self.mu)
        places = self.split(seed)[int(test)]
        y = self.images.y[places].double()
        observed = y if test else flipped_labels(self.n, self.flip_prob, seed)[1]
        xi = self.sigma_xi * rng.normal((len(places), self.d), seed, "test noise" if test else "noise")
        image = self.patches[places]
        return ImageSample(torch.stack([image, xi], dim=-2), observed, y, self.mu, image, xi)


def half_difference(images: Float[Tensor, "N d"], y: Float[Tensor, " N"]) -> Float[Tensor, " d"]:
    """Half the difference of the class means.

    Parameters
    ----------
    images
        Images of both classes, shape ``(N, d)``.
    y
        Their labels, +1 or -1, shape ``(N,)``.

    Returns
    -------
    Tensor
        Shape ``(d,)``.
    """
    return (images[y > 0].mean(0) - images[y < 0].mean(0)) / 2


def digits(classes: tuple[int, int] = (3, 8), enlarge: int = 1) -> Images:
    """Handwritten digits of 8 x 8 pixels, about 180 of each class; they come with scikit-learn.

    Parameters
    ----------
    classes
        The digits that are labelled +1 and -1.
    enlarge
        Each pixel becomes a square of this many pixels on an edge, so that a patch has ``64 enlarge**2`` dimensions.
        It changes the length of a picture, no angle between pictures.

    Returns
    -------
    Images
        N pictures of shape ``(8 enlarge, 8 enlarge)`` and their labels.

    Raises
    ------
    ValueError
        If the classes are not two different digits, or a pixel would vanish.

    Source: Alpaydin and Kaynak (1998), the test set of the optical recognition data, as in scikit-learn's load_digits.

    Examples
    --------
    >>> digits((3, 8), enlarge=2).pixels.shape
    torch.Size([357, 16, 16])
    """
    _check_classes(classes, range(10), "digits from 0 to 9")
    require("enlarge", enlarge, Count)
    pixels, found = ten_digits.pictures()
    pixels = (pixels[:, 0] / 16).repeat_interleave(enlarge, -2).repeat_interleave(enlarge, -1)
    return _two_classes(pixels, found.numpy(), classes)


def cifar10(classes: tuple[str, str] = ("cat", "dog"), train: bool = True) -> Images:
    """Colour photographs of 32 x 32 pixels, 5000 of each class (1000 with ``train=False``): d = 3072.

    Downloaded on first use (162 MB, its checksum compared), kept in ``$FLBOOK_CACHE``, else in the user's cache folder.

    Parameters
    ----------
    classes
        The names, of ``CIFAR10_CLASSES``, that are labelled +1 and -1.
    train
        The training set, or the test set?

    Returns
    -------
    Images
        N pictures of shape ``(3, 32, 32)`` and their labels.

    Raises
    ------
    ConnectionError
        If the file is neither here nor to be had.
    ValueError
        If its checksum differs, or the classes are not two different names.

    Source: Krizhevsky (2009); the binary version on the author's page.
    """
    _check_classes(classes, CIFAR10_CLASSES, "names among " + ", ".join(CIFAR10_CLASSES))
    files = [f"data_batch_{i}.bin" for i in range(1, 6)] if train else ["test_batch.bin"]
    read = [read_cifar10(path) for path in _cifar10_files(files)]
    pixels, labels = (np.concatenate(part) for part in zip(*read, strict=True))
    first, second = (CIFAR10_CLASSES.index(name) for name in classes)
    return _two_classes(torch.from_numpy(pixels), labels, (first, second), brightest=255.0)


def read_cifar10(path: str | Path) -> tuple[np.ndarray, np.ndarray]:
    """Pictures ``(N, 3, 32, 32)`` and classes ``(N,)``, bytes as they are, from a file in CIFAR-10's binary format.

    Parameters
    ----------
    path
        Path of the file.

    Returns
    -------
    tuple[ndarray, ndarray]
        Whole numbers: colours from 0 to 255, classes from 0 to 9.

    Raises
    ------
    ValueError
        If the file is of another format.
    """
    content = np.fromfile(path, dtype=np.uint8)
    if content.size == 0 or content.size % CIFAR10_ROW:
        raise ValueError(f"{Path(path).name} must hold rows of {CIFAR10_ROW} bytes, CIFAR-10's binary format; it has "
                         f"{content.size} bytes")
    rows = content.reshape(-1, CIFAR10_ROW)
    if rows[:, 0].max() > 9:
        raise ValueError(f"{Path(path).name} must begin each row with a class from 0 to 9; found {rows[:, 0].max()}")
    return rows[:, 1:].reshape(-1, 3, 32, 32), rows[:, 0].astype(int)


def _cifar10_files(names: list[str]) -> list[Path]:
    import pooch

    members = [f"cifar-10-batches-bin/{name}" for name in names]
    try:
        files = pooch.retrieve(
            CIFAR10_URL, known_hash=f"md5:{CIFAR10_MD5}", fname="cifar-10-binary.tar.gz",
            path=os.environ.get("FLBOOK_CACHE") or pooch.os_cache("flbook"), processor=pooch.Untar(members=members),
        )
    except OSError as error:
        raise ConnectionError(f"CIFAR-10 is not on this machine and {CIFAR10_URL} cannot be read "
                              f"({type(error).__name__}): connect to the network once, or use digits(), "
                              "which needs none") from None
    except ValueError:
        raise ValueError(f"{CIFAR10_URL} does not hold the CIFAR-10 we know: its MD5 checksum is not {CIFAR10_MD5}; "
                         "nothing was kept") from None
    found = {Path(file).name: Path(file) for file in files}
    return [found[name] for name in names]


def _two_classes(pixels: Tensor, labels: np.ndarray, classes: tuple[int, int], brightest: float = 1.0) -> Images:
    found = torch.from_numpy(labels)
    chosen = (found == classes[0]) | (found == classes[1])
    y = torch.where(found[chosen] == classes[0], 1.0, -1.0).double()
    return Images(pixels[chosen].double() / brightest, y)


def _check_classes(classes: tuple, known, what: str) -> None:
    if len(classes) != 2 or classes[0] == classes[1] or any(one not in known for one in classes):
        raise ValueError(f"classes must be two different {what}; got {tuple(classes)!r}")


def _shuffle(places: Tensor, generator: torch.Generator) -> Tensor:
    return places[torch.randperm(len(places), generator=generator)]
