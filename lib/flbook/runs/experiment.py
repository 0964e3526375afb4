"""An experiment as one object: the setting, its cell, what the cell gives, and the presets that it is run at.

A cell is a function of one point of the axes that are looped over. The axes that are left are leading axes of its
tensors, so a cell is vectorised over whatever the experiment can vectorise over. The object loops, stacks, labels,
caches, stores and lists; the cell computes.

>>> from dataclasses import dataclass
>>> from flbook.domains import Natural, Positive
>>> from flbook.runs.settings import axis
>>> @dataclass(frozen=True)
... class Setting(Grid):
...     lr: tuple[Positive, ...] = axis([0.1, 0.2], "step size η")
...     seed: tuple[Natural, ...] = axis(range(3), "seed")
>>> experiment = Experiment(Setting, version=1, loops=("lr",), gives={"loss": ("training loss", "nats")},
...                         presets={"tiny": ("A blink", {"seed": (0,)})})
>>> @experiment.cell
... def cell(s, device):
...     return {"loss": np.full(len(s.seed), s.lr)}
>>> experiment.measure(experiment.setting("book")).loss.dims
('lr', 'seed')
"""

import sys
from collections.abc import Callable, Iterable, Mapping
from functools import update_wrapper, wraps
from itertools import product
from pathlib import Path
from typing import Any, cast

import numpy as np
import xarray as xr

from flbook.rng import fresh_seed
from flbook.runs import closure, files, settings
from flbook.runs.cells import cell_of
from flbook.runs.labels import labelled
from flbook.runs.settings import Grid
from flbook.runs.sweep import cache_folder, sweep


class Experiment:
    """A measurement over a grid: a setting names the axes, a cell measures at one point of them, `run` does all.

    Parameters
    ----------
    setting
        Its `Grid`: the tuples are the axes, the defaults are the preset ``"book"``.
    version
        Raised by hand when the meaning of a number changes; a stored result of another version is refused.
    gives
        What a cell gives: by name ``(long_name, units)``, over all axes; or ``(long_name, units, dims)`` where a
        variable lacks axes or has further ones. What a cell gives as a DataArray may be labelled there instead.
    loops
        The axes that the object loops over, in the order of the result's dimensions; a cell sees one value of each.
    left
        The other axes in the order in which they lead the cell's tensors; as the setting has them if None.
    chunk
        How many values of an axis one file of the cache takes, unless a call says otherwise.
    beside
        Further axes: by name ``(values, long_name, units)``; values may be a function of the setting.
    presets
        By name (a sentence, the fields that change).
    stored
        The preset whose result lies beside the experiment's file under its own name; results of others add theirs.
    devices
        Kinds of device that the cell can use; others are refused.
    reads
        Data files beside the experiment's file that the cell reads; they are in the digest.
    missing
        Variables that have no value in some cells, such as a time that is never reached: nan is no sign of divergence.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from flbook import rng
    >>> from flbook.domains import Count, Natural
    >>> from flbook.runs import axis
    >>> @dataclass(frozen=True)
    ... class Setting(Grid):
    ...     n: tuple[Count, ...] = axis([10, 1000], "samples n")
    ...     seed: tuple[Natural, ...] = axis(range(4), "seed")
    >>> experiment = Experiment(Setting, version=1, loops=("n",), gives={"average": ("mean of n draws", "1")})
    >>> @experiment.cell
    ... def cell(s, device):
    ...     return {"average": rng.normal((s.n,), s.seed, "sample").mean(-1)}
    >>> dict(experiment.measure("book").average.sizes)
    {'n': 2, 'seed': 4}
    """

    def __init__(self, setting: type[Grid], *, version: int, gives: Mapping[str, tuple] | None = None,
                 loops: tuple[str, ...] = (), left: tuple[str, ...] | None = None,
                 chunk: Mapping[str, int] | None = None, beside: Mapping[str, tuple] | None = None,
                 presets: Mapping[str, tuple[str, Mapping]] | None = None, stored: str | None = None,
                 devices: tuple[str, ...] = ("cpu", "cuda"), reads: tuple[str, ...] = (),
                 missing: tuple[str, ...] = ()):
        axes = settings.axes(setting())
        rest = tuple(name for name in axes if name not in loops)
        self.Setting, self.version, self.loops, self.left = setting, version, tuple(loops), tuple(left or rest)
        self.chunk, self.gives, self.beside = dict(chunk or {}), dict(gives or {}), dict(beside or {})
        self._presets = {"book": ("What the page runs", {})} | dict(presets or {})
        self.larger, self.devices, self.reads, self.missing, self.keep = stored, devices, reads, missing, None
        self.whole, self._cell, self._memo = Part(self, None), None, None
        if set(self.loops) - set(axes) or sorted(self.left) != sorted(rest):
            raise ValueError(f"loops and left must share the axes {', '.join(axes)} between them; got {loops}, {left}")
        if stored is not None and stored not in self._presets:
            raise ValueError(f"stored must be a preset, {', '.join(self._presets)}; got {stored!r}")

    def cell(self, function: Callable) -> Callable:
        """Decorator of the cell, ``cell(s, device)``: a dict of tensors over the axes left, or a labelled Dataset.

        Parameters
        ----------
        function
            The cell itself.

        Returns
        -------
        Callable
            The function itself.
        """
        self._cell, self.module = function, function.__module__
        found = getattr(sys.modules[self.module], "__file__", None)
        self.file = Path(found).resolve() if found and Path(found).is_file() else None
        data = tuple(self.file.with_name(name) for name in self.reads) if self.file else ()
        self.files = (*closure.closure(self.file), *data) if self.file else ()
        self.source = closure.digest(self.files)  # now: of the files as they were imported
        return function

    def shared(self, *over: str) -> Callable:
        """Decorator of what cells share, such as drawn data: made once for each value of the loops `over`.

        The function is called with the cell; it is refused the other loops, on which it cannot depend. Where `over` are
        the outermost loops only the last is kept, otherwise all of a chunk.

        Parameters
        ----------
        *over
            Names of loops; none if all cells share it.

        Returns
        -------
        Callable
            The decorator of a function ``(s, device)``.
        """
        if set(over) - set(self.loops):
            raise ValueError(f"what is shared is shared over loops, {', '.join(self.loops)}; got {', '.join(over)}")
        hidden = tuple(name for name in self.loops if name not in over)

        def decorate(function: Callable) -> Callable:
            @wraps(function)
            def shared(s: Grid, device: object = "cpu") -> Any:
                known = {} if self._memo is None else self._memo.setdefault(function, {})
                key = (*(getattr(s, name) for name in over), str(device))
                if key not in known:
                    if self.loops[:len(over)] == over:
                        known.clear()
                    known[key] = function(cell_of(s, {}, hidden), device)
                return known[key]
            return shared
        return decorate

    def also(self, function: Callable) -> "Part":
        """Decorator of what else is computed from a setting, ``(setting, device) -> Dataset``, kept in the cache.

        Parameters
        ----------
        function
            The function, at the top level of the experiment's module.

        Returns
        -------
        Part
            It is called as the function is, and a sweep hands it to workers.
        """
        return Part(self, function)

    def kept(self, function: Callable) -> Callable:
        """Decorator of what a stored result keeps of a run, Dataset to Dataset.

        Parameters
        ----------
        function
            Takes the Dataset of a run, and returns the one that is stored.

        Returns
        -------
        Callable
            The function itself.
        """
        self.keep = function
        return function

    @property
    def presets(self) -> dict[str, str]:
        """The presets by name, and what each is in a sentence.

        Returns
        -------
        dict[str, str]
            Sentences by name, the book's first.
        """
        return {name: sentence for name, (sentence, _) in self._presets.items()}

    def setting(self, preset: str = "book", **changed: Any) -> Grid:
        """The setting of a preset, with fields changed. Raises ValueError if there is no such preset or field.

        Parameters
        ----------
        preset
            Its name.
        **changed
            Fields and their values, which replace the preset's.

        Returns
        -------
        Grid
            The setting.
        """
        if preset not in self._presets:
            raise ValueError(f"{self.name} has no preset {preset!r}; it has {', '.join(self._presets)}")
        return self.Setting().thinned(**(dict(self._presets[preset][1]) | changed))

    def asked(self, setting: Grid | str) -> Grid:
        """A setting, or the one of a preset by its name.

        Parameters
        ----------
        setting
            A setting, or the name of a preset.

        Returns
        -------
        Grid
            The setting.
        """
        return self.setting(setting) if isinstance(setting, str) else setting

    def scale_of(self, setting: Grid) -> str:
        """The name of the preset that a setting is, else ``"custom"``.

        Parameters
        ----------
        setting
            The setting of a run.

        Returns
        -------
        str
            The preset's name, or ``"custom"``.
        """
        return next((name for name in self._presets if self.setting(name) == setting), "custom")

    def run(self, setting: Grid | str = "book", device: object = "cpu", **how: Any) -> xr.Dataset:
        """The sweep over all axes of a setting or preset, cached and resumable.

        Parameters
        ----------
        setting
            A setting, or the name of a preset.
        device
            Where to compute.
        **how
            Further arguments of `flbook.runs.sweep`; `chunk` is the experiment's where it is not given.

        Returns
        -------
        xarray.Dataset
            Variables over the axes of the setting, with the attributes that a sweep adds.
        """
        how.setdefault("chunk", self.chunk)
        return sweep(self.whole, self.asked(setting), device=device, **how)

    def measure(self, setting: Grid | str = "book", device: object = "cpu", through: Callable = list) -> xr.Dataset:
        """Every cell of a setting or preset, past the cache; dimensions are the loops, then the axes left.

        Parameters
        ----------
        setting
            A setting, or the name of a preset.
        device
            Where to compute.
        through
            A function of an iterable through which the cells go; it may count them, as ``tqdm.tqdm`` does.

        Returns
        -------
        xarray.Dataset
            Labelled; what some cells do not give is NaN there.
        """
        if self._cell is None:
            raise ValueError("the experiment has no cell; decorate a function with @experiment.cell")
        self.check_device(device)
        setting = self.asked(setting)
        self._memo, sizes = {}, {axis: len(values) for axis, values in settings.axes(setting).items()}
        try:
            cells = [self._variables(self._cell(s, device), sizes) for s in through(self.cells(setting))]
        finally:
            self._memo = None
        return self._joined(setting, cells)

    def cells(self, setting: Grid) -> Iterable[Grid]:
        """The cells of a setting, the last loop running fastest: the setting with one value for each loop.

        Parameters
        ----------
        setting
            The setting.

        Yields
        ------
        Grid
            A cell.
        """
        for values in product(*(getattr(setting, name) for name in self.loops)):
            yield cell_of(setting, dict(zip(self.loops, values, strict=True)))

    def check_device(self, device: object) -> None:
        """Refuse a kind of device that the cell cannot use.

        Parameters
        ----------
        device
            Such as ``"cpu"`` or ``"cuda:1"``, as a text or torch's own.
        """
        if str(device).partition(":")[0] not in self.devices:
            raise ValueError(f"device must be {' or '.join(self.devices)} for {self.name}; got {str(device)!r}")

    def explore(self, draw: Callable | None = None, preset: Grid | str = "book", **how: Any) -> None:
        """Controls made from the setting's fields, and the figure at their values; see `flbook.runs.explore`.

        Parameters
        ----------
        draw
            Function of the Dataset that draws the figure; None is `flbook.plots.overview`.
        preset
            Where the controls start: the name of a preset, or a setting.
        **how
            The other arguments of `flbook.runs.explore.explore`.
        """
        from flbook.runs.explore import explore

        explore(self, draw, preset, **how)

    @property
    def name(self) -> str:
        """``"chapter/name"`` where a package above its file lists its EXPERIMENTS, otherwise the name of its file.

        Returns
        -------
        str
            What lists, results and files of the cache call it.
        """
        stem = self.file and (self.file.parent if self.file.stem == "__init__" else self.file).stem
        above = (self.module.rsplit(".", k)[0] for k in range(1, self.module.count(".") + 1))
        chapter = next((one for one in above if hasattr(sys.modules.get(one), "EXPERIMENTS")), None)
        own = (stem or self.module) + f":{self.place}".removesuffix(":experiment")
        return f"{chapter.rpartition('.')[2]}/{own}" if chapter else own

    @property
    def place(self) -> str:
        """The name under which its module has it. Raises ValueError if it has none: then no worker could find it.

        Returns
        -------
        str
            ``"experiment"`` in a lecture's file.
        """
        found = [name for name, value in vars(sys.modules[self.module]).items() if value is self]
        if not found:
            raise ValueError(f"an experiment must be a name at the top level of its module {self.module}")
        return found[0]

    def path(self, suffix: str = ".nc", preset: str | None = None) -> Path:
        """Where a result of it lies: beside its file, under its name and that of a preset other than the one stored.

        Raises ValueError if it has no file, as in a notebook.

        Parameters
        ----------
        suffix
            End of the file's name.
        preset
            Name of a preset; None is the one stored.

        Returns
        -------
        Path
            The file, which need not be there.
        """
        if self.file is None:
            raise ValueError(f"{self.name} is of no file, beside which a result could be stored")
        more = "" if preset in (None, self.larger) else f"-{preset}"
        return self.file.with_name(self.name.rpartition("/")[2].replace(":", "_") + more + suffix)

    def command(self, preset: str, device: object = "cpu") -> str:
        """What runs a preset from the command line.

        Parameters
        ----------
        preset
            Name of a preset.
        device
            Where to compute.

        Returns
        -------
        str
            A line for a shell.
        """
        return f"python -m flbook run {self.name.rpartition('/')[2]} --scale {preset} --device {device}"

    def trimmed(self, dataset: xr.Dataset) -> xr.Dataset:
        """What a stored result keeps of a run, with the run's attributes.

        Parameters
        ----------
        dataset
            The result of a run.

        Returns
        -------
        xarray.Dataset
            The run's own where no function says what is kept.
        """
        kept = self.keep(dataset) if self.keep else dataset
        return kept.assign_attrs({**dataset.attrs, **kept.attrs})

    def stored(self, preset: str | None = None) -> xr.Dataset:
        """The stored result, in memory, of the preset that is stored or of another.

        Raises ValueError if there is none, or it is of another setting or version. Commit, source digest, device and
        seconds are provenance, and refuse nothing.

        Parameters
        ----------
        preset
            Name of a preset; None is the one that is stored.

        Returns
        -------
        xarray.Dataset
            The result, whose attributes name the preset (`scale`) and the `command` that makes it.
        """
        preset = preset or self.larger
        if preset is None:
            raise ValueError(f"{self.name} stores no result; name one of its presets, {', '.join(self._presets)}.")
        file, again = self.path(preset=preset), f"`{self.command(preset)} --store` makes it"
        if not file.is_file():
            raise ValueError(f"there is no stored result of {self.name!r} at {preset!r}; {again}.")
        try:
            dataset = files.load(file)
        except ValueError as error:
            raise ValueError(f"the stored result {error}; {again} anew.") from None
        for what, ours in (("version", self.version), ("setting", settings.to_json(self.setting(preset)))):
            if dataset.attrs.get(what) != ours:
                raise ValueError(f"the stored result {file.name} is of {what} {dataset.attrs.get(what)}, not {ours}; "
                                 f"{again} anew.")
        return dataset.assign_attrs(scale=preset, command=self.command(preset, dataset.attrs.get("device", "cpu")))

    def training_file(self, *about: object) -> Path:
        """Where a long training run inside a cell keeps its checkpoint until it is done.

        In the cache, named like a chunk by all that may change it: `about`, ``FLBOOK_SEED`` and the source.

        Parameters
        ----------
        *about
            What the training depends on, such as its setting; each taken as text.

        Returns
        -------
        Path
            A safetensors file, which need not be there.
        """
        named = settings.digest(self.name, self.source, fresh_seed(), *about)
        return cache_folder(None) / f"training-{named}.safetensors"

    def _variables(self, given: Mapping | xr.Dataset, sizes: dict[str, int]) -> dict[str, xr.DataArray]:
        """What a cell gave, with the dimensions that it has of its own; `sizes` are those of the setting's axes."""
        return {str(name): value if isinstance(value, xr.DataArray) else self._array(str(name), value, sizes)
                for name, value in (given.data_vars if isinstance(given, xr.Dataset) else given).items()}

    def _array(self, name: str, value: Any, sizes: dict[str, int]) -> xr.DataArray:
        if name not in self.gives:
            raise ValueError(f"the cell gives {name!r}, which gives does not name: {', '.join(self.gives)}")
        dims = [dim for dim in self._dims(name) if dim not in self.loops]
        value = np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)
        want = tuple(sizes.get(dim, "any") for dim in dims)
        if value.ndim != len(dims) or any(w not in (n, "any") for w, n in zip(want, value.shape, strict=True)):
            raise ValueError(f"the cell gives {name} of shape {value.shape}; its axes {tuple(dims)} have {want}")
        return xr.DataArray(value, dims=dims)

    def _dims(self, name: str, own: tuple = ()) -> tuple[str, ...]:
        _, _, *dims = self.gives.get(name, ("", ""))
        further = tuple(dim for dim in own if dim not in self.left)
        return tuple(dims[0]) if dims else (*self.loops, *(d for d in self.left if not own or d in own), *further)

    def _joined(self, setting: Grid, cells: list[dict[str, xr.DataArray]]) -> xr.Dataset:
        """All cells as one Dataset. What some cells do not give is NaN there."""
        columns, coords = {}, setting.coordinates()
        for name in dict.fromkeys(name for cell in cells for name in cell):
            first = next(cell[name] for cell in cells if name in cell)
            rows = [cell[name].transpose(*first.dims).values if name in cell else np.full(first.shape, np.nan)
                    for cell in cells]
            shape = [len(getattr(setting, loop)) for loop in self.loops] + list(first.shape)
            rows = xr.Variable((*self.loops, *first.dims), np.stack(rows).reshape(shape))
            dims = self._dims(name, first.dims)
            for loop in [loop for loop in self.loops if loop not in dims]:
                whole, rows = rows, rows.isel({loop: 0})
                if not np.array_equal(whole, rows.set_dims(whole.dims, whole.shape), equal_nan=rows.dtype.kind == "f"):
                    raise ValueError(f"{name} is said to lack the axis {loop}, but differs along it")
            columns[name] = (dims, rows.transpose(*dims).values, *self.gives.get(name, (dict(first.attrs),))[:2])
            coords |= {str(dim): (dim, first[dim].values, dict(first[dim].attrs)) for dim in first.coords
                       if dim in first.dims and dim not in coords}
        further = {dim: (dim, list(cast(Any, values)(setting) if callable(values) else values), *about)
                   for dim, (values, *about) in self.beside.items()}
        return labelled(columns, coords | further)


class Part:
    """A function of a setting as a sweep takes it: the whole experiment, or what else it computes; pickled by name.

    Parameters
    ----------
    experiment
        That to which it belongs.
    function
        ``(setting, device) -> Dataset``; None is the experiment's own `measure`.
    """

    def __init__(self, experiment: Experiment, function: Callable | None):
        self.experiment, self.function = experiment, function
        self.every_axis = function is None  # must every axis be a dimension of the result?
        if function is not None:
            update_wrapper(self, function)

    def __call__(self, setting: Grid | str = "book", device: object = "cpu", **how: Any) -> xr.Dataset:
        """Its Dataset, from the cache where it is there."""
        how.setdefault("progress", False)
        return sweep(self, self.experiment.asked(setting), device=device, **how)

    def uncached(self, setting: Grid, device: object = "cpu") -> xr.Dataset:
        """Its Dataset, computed.

        Parameters
        ----------
        setting
            The setting.
        device
            Where to compute.

        Returns
        -------
        xarray.Dataset
            What the function returns.
        """
        self.experiment.check_device(device)
        return (self.function or self.experiment.measure)(setting, device)

    def __reduce__(self) -> tuple:
        one = self.experiment
        return _part, (one.module, one.place, self.function and self.function.__qualname__)


def _part(module: str, place: str, function: str | None) -> Part:
    __import__(module)
    found = vars(sys.modules[module])
    return found[function] if function else found[place].whole
