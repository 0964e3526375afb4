"""Real images beside noise patches: digits, CIFAR-10's binary format, and what the sample keeps."""

import functools
import hashlib
import http.server
import tarfile
import threading

import numpy as np
import pytest
import torch

from flbook.data import images
from flbook.data.images import ImageNoise, Images, cifar10, digits, read_cifar10


def two_by_one() -> Images:
    """Four pictures of two pixels, simple enough for a calculation by hand."""
    pixels = torch.tensor([[[1.0, 0.0]], [[1.0, 0.5]], [[0.0, 0.0]], [[0.0, 0.5]]])
    return Images(pixels, torch.tensor([1.0, 1.0, -1.0, -1.0]))


def test_patches_by_hand():
    data = ImageNoise(two_by_one(), n=2, snr=3.0, sigma_xi=2.0)
    # mean picture (0.5, 0.25), mu = (0.5, 0); the factor is 3 * 2 * sqrt(2) / 0.5
    factor = 12 * 2**0.5
    assert data.d == 2
    torch.testing.assert_close(data.mu, torch.tensor([0.5 * factor, 0.0], dtype=torch.float64))
    by_hand = factor * torch.tensor([[0.5, -0.25], [0.5, 0.25], [-0.5, -0.25], [-0.5, 0.25]], dtype=torch.float64)
    torch.testing.assert_close(data.patches, by_hand)


def test_moments_by_hand():
    # u is (0, -+1/4) in every class and mu = (1/2, 0): nothing along mu, tr S = 1/16, |mu|^2 = 1/4
    along, total, square = ImageNoise(two_by_one(), n=2, snr=3.0).moments
    assert (along, total, square) == pytest.approx((0, 1 / 4, 1 / 16))
    small, large = (ImageNoise(digits(enlarge=e), n=2, snr=snr).moments for e, snr in ((1, 0.1), (3, 0.7)))
    assert small == pytest.approx(large)


def test_digits():
    small, large = digits((3, 8)), digits((3, 8), enlarge=4)
    assert small.pixels.shape == (357, 8, 8) and large.pixels.shape == (357, 32, 32)
    assert int((small.y == 1).sum()) == 183 and int((small.y == -1).sum()) == 174
    assert small.pixels.min() == 0 and small.pixels.max() == 1
    torch.testing.assert_close(large.pixels[:, ::4, ::4], small.pixels)
    torch.testing.assert_close(large.pixels.square().sum((1, 2)), 16 * small.pixels.square().sum((1, 2)))


def test_the_sample_keeps_its_truth():
    data = ImageNoise(digits(), n=20, snr=0.5, sigma_xi=2.0, flip_prob=0.1)
    sample = data.draw(seed=3)
    assert sample.x.shape == (20, 2, 64)
    torch.testing.assert_close(sample.x, torch.stack([sample.images, sample.xi], dim=1))
    assert sample.y.sum() == 0 and int((sample.y != sample.observed).sum()) == 2
    train, rest = data.split(3)
    torch.testing.assert_close(sample.images, data.patches[train])
    torch.testing.assert_close(sample.y, data.images.y[train])
    assert len(rest) == 357 - 20 and not set(train.tolist()) & set(rest.tolist())
    torch.testing.assert_close(sample.mu.norm().item() / (2.0 * 8), 0.5)
    assert 1.8 < sample.xi.std() < 2.2


def test_the_test_sample_shares_nothing_with_training():
    data = ImageNoise(digits(), n=21, flip_prob=0.2)
    train, test = data.draw(0), data.draw_test(0)
    assert len(test.y) == 357 - 21 and torch.equal(test.y, test.observed)
    assert torch.cdist(train.xi, test.xi).min() > 1 and torch.cdist(train.xi, data.fresh_noise(50, 0)).min() > 1
    assert data.fresh_noise(5, (0, 1)).shape == (2, 5, 64)


def test_snr_scales_images_and_leaves_noise():
    low, high = (ImageNoise(digits(), n=6, snr=snr).draw(1) for snr in (0.1, 0.2))
    torch.testing.assert_close(2 * low.images, high.images)
    assert torch.equal(low.xi, high.xi)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: digits((3, 3)), r"classes must be two different digits from 0 to 9; got \(3, 3\)"),
        (lambda: digits((3, 12)), r"classes must be two different digits"),
        (lambda: digits(enlarge=0), "enlarge must be a whole number of at least 1; got 0"),
        (lambda: cifar10(("cat", "unicorn")), r"classes must be two different names among airplane.*unicorn"),
        (lambda: ImageNoise(digits(), n=348), r"n must lie between 2 and 347.*174 images.*got 348"),
    ],
)
def test_bad_input_gets_a_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


def binary_file(path, labels):
    """A file in CIFAR-10's binary format, whose pictures are all different, and the same as numbers."""
    pictures = np.arange(len(labels) * 3072).reshape(-1, 3, 32, 32) % 251
    rows = np.concatenate([np.array(labels)[:, None], pictures.reshape(len(labels), -1)], axis=1)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(rows.astype(np.uint8).tobytes())
    return pictures


def test_parser(tmp_path):
    pictures = binary_file(tmp_path / "data_batch_1.bin", [3, 5, 9])
    pixels, labels = read_cifar10(tmp_path / "data_batch_1.bin")
    assert labels.tolist() == [3, 5, 9]
    np.testing.assert_array_equal(pixels, pictures)
    # the format stores planes: the second byte of a row is the red of the first pixel, byte 1025 its green
    assert pixels[1, 1, 0, 0] == (tmp_path / "data_batch_1.bin").read_bytes()[3073 + 1 + 1024]


@pytest.mark.parametrize(("content", "sentence"), [(b"", "has 0 bytes"), (b"\0" * 3072, "has 3072 bytes"),
                                                   (b"\x0a" + b"\0" * 3072, "found 10")])
def test_parser_refuses_other_files(tmp_path, content, sentence):
    (tmp_path / "data_batch_1.bin").write_bytes(content)
    with pytest.raises(ValueError, match=rf"data_batch_1.bin must .*{sentence}"):
        read_cifar10(tmp_path / "data_batch_1.bin")


@pytest.fixture
def tiny_cifar(tmp_path, monkeypatch):
    """The archive in miniature, served from this machine."""
    site = tmp_path / "site"
    files = {f"data_batch_{i}.bin": [3, 5, i] for i in range(1, 6)} | {"test_batch.bin": [5, 0, 3]}
    with_folder = site / "cifar-10-batches-bin"
    pictures = {name: binary_file(with_folder / name, labels) for name, labels in files.items()}
    archive = site / "cifar-10-binary.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(with_folder, arcname=with_folder.name)
    handler = functools.partial(QuietHandler, directory=str(site))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("FLBOOK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(images, "CIFAR10_URL", f"http://127.0.0.1:{server.server_port}/{archive.name}")
    monkeypatch.setattr(images, "CIFAR10_MD5", hashlib.md5(archive.read_bytes()).hexdigest())
    yield pictures
    server.shutdown()
    server.server_close()


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    """Serves files and logs nothing."""

    def log_message(self, *args):
        """Nothing."""


def test_cifar10(tiny_cifar, monkeypatch):
    test = cifar10(("cat", "dog"), train=False)
    assert test.y.tolist() == [-1, 1]
    np.testing.assert_allclose(test.pixels, tiny_cifar["test_batch.bin"][[0, 2]] / 255)
    monkeypatch.setattr(images, "CIFAR10_URL", "http://127.0.0.1:9/gone.tar.gz")  # from now on the kept copy serves
    train = cifar10(("cat", "dog"))
    assert train.y.tolist() == [1, -1, 1, -1, 1, -1, 1, 1, -1, 1, -1, -1]  # batches 3 and 5 hold one more of a class
    assert ImageNoise(train, n=4).d == 3072


def test_cifar10_without_network(tmp_path, monkeypatch):
    monkeypatch.setenv("FLBOOK_CACHE", str(tmp_path))
    monkeypatch.setattr(images, "CIFAR10_URL", "http://127.0.0.1:9/cifar-10-binary.tar.gz")
    with pytest.raises(ConnectionError, match=r"^CIFAR-10 is not on this machine .*use digits\(\), which needs none$"):
        cifar10()
    assert not [file for file in tmp_path.rglob("*") if file.is_file()]


def test_cifar10_with_another_checksum(tiny_cifar, tmp_path, monkeypatch):
    monkeypatch.setattr(images, "CIFAR10_MD5", "0" * 32)
    with pytest.raises(ValueError, match=r"^http.* does not hold the CIFAR-10 we know: .*0{32}; nothing was kept$"):
        cifar10()
    assert not [file for file in (tmp_path / "cache").rglob("*") if file.is_file()]
