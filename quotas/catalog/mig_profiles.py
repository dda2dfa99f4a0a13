"""A GPU that MIG divides: its profiles, and their sizes, engines and placements. Pure.

A GPU has compute slices and memory slices. A profile takes some of both, and may start at certain memory slices.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Profile:
    """A GPU instance profile: it may start at the memory slices `starts` and takes `size` of them.

    `gi_id` is NVML's id; at most `max_instances` fit a GPU. Engines are counts, None without a source.
    """

    name: str
    gi_id: int
    compute: int
    memory_mib: int
    multiprocessors: int
    starts: tuple[int, ...]
    size: int
    max_instances: int
    copy_engines: int | None = None
    decoders: int | None = None
    jpeg_engines: int | None = None
    ofa_engines: int | None = None
    encoders: int | None = 0

    @property
    def resource(self) -> str:
        """Return the device plugin's resource under strategy `mixed`, where `+` becomes `.`: NVIDIA's
        internal/rm/rm.go.
        """
        return "nvidia.com/mig-" + self.name.replace("+", ".")

    @property
    def has_media(self) -> bool:
        """Return whether it takes the GPU's media engines, of which there is one set: `+me`, `+me.all`."""
        return "+me" in self.name


@dataclass(frozen=True)
class Geometry:
    """The geometry of one product. `estimated` names the profiles with a number scaled from the others, without a
    source.
    """

    name: str
    compute: int
    memory: int
    profiles: tuple[Profile, ...] = field(hash=False)
    source: str = ""
    estimated: tuple[str, ...] = ()

    def profile(self, name: str) -> Profile:
        """Return the profile of that name; a KeyError names the GPU and its profiles."""
        for candidate in self.profiles:
            if candidate.name == name:
                return candidate
        raise KeyError(f"{self.name} has no MIG profile {name}; it has {', '.join(p.name for p in self.profiles)}")
