"""The admin's form of a flavor: quantities as Kubernetes writes them, errors beside their fields."""

from collections.abc import Callable
from typing import Any, ClassVar

from django import forms

from portal.core.errors import Problem
from quotas.catalog import quantities, services
from quotas.catalog.models import Flavor


class QuantityField(forms.CharField):
    """A quantity such as ``23500m`` or ``250Gi``, stored as an integer; empty is None."""

    def __init__(self, *, read: Callable[[str], int], write: Callable[[int], str], **kwargs: Any) -> None:
        super().__init__(required=False, **kwargs)
        self._read, self._write = read, write

    def prepare_value(self, value: Any) -> Any:
        return self._write(value) if isinstance(value, int) else value

    def to_python(self, value: Any) -> Any:
        text = super().to_python(value)
        try:
            return self._read(text) if text else None
        except ValueError as error:
            raise forms.ValidationError(f"{error}.") from error


class FlavorForm(forms.ModelForm):
    cpu_millicores_per_gpu = QuantityField(
        read=quantities.millicores,
        write=quantities.cpu_text,
        label="CPU per GPU",
        help_text="CPU that goes with a whole GPU, such as 23 or 23500m; empty: an even part of the smallest node.",
    )
    memory_mib_per_gpu = QuantityField(
        read=quantities.mib,
        write=quantities.memory_text,
        label="Memory per GPU",
        help_text="Memory that goes with a whole GPU, such as 250Gi; empty: an even part of the smallest node.",
    )

    gpu_memory_mib = QuantityField(
        read=quantities.mib,
        write=quantities.memory_text,
        label="Memory of a whole GPU",
        help_text="As nvidia-smi prints it, such as 192Gi: from it follows how MIG divides a GPU that no table lists. "
        "It counts for all flavors of this model in the cluster. Empty: as GPU feature discovery labels it.",
    )

    class Meta:
        model = Flavor
        fields: ClassVar = [*Flavor.DECIDED, "name"]

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or {}
        changed = {name: values[name] for name in self.changed_data if name in values}
        for check in (services.check_shares, services.check_gpu_memory):
            try:
                check(self.instance, changed)
            except Problem as problem:
                for field, messages in problem.errors.items():
                    self.add_error(field, messages)
        return values
