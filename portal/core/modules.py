"""Finds the modules of a package, so that one is added by its file alone."""

from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType


def modules_of(package: ModuleType) -> list[ModuleType]:
    """Return the modules that are directly in a package, by name, imported."""
    return [import_module(f"{package.__name__}.{found.name}") for found in iter_modules(package.__path__)]
