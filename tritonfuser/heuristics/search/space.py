"""Search spaces as plain data: fields, legal values, conditions between fields."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, product
from typing import Any

from ...errors import ParamsError
from ..params import PARAMS, HeuristicParams
from ..plain_data.codec import encode

Values = Mapping[str, Any]
"""A value for each field."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One or several fields of params whose values are chosen together.

    Attributes
    ----------
    fields : tuple of str
        Names of fields of the params.
    values : tuple of tuple
        The legal values: each has one value for each of the fields.
    """

    fields: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]

    @staticmethod
    def of(field: str, values: Iterator[Any] | tuple[Any, ...] | range) -> Choice:
        """The choice of one field."""
        return Choice((field,), tuple((value,) for value in values))


@dataclass(frozen=True, slots=True)
class AtMost:
    """A condition on a product of fields: ``scale * product <= limit * limit_product``.

    The product of no fields is 1.

    Attributes
    ----------
    product : tuple of str
        Names of fields on the left side. A field with tails counts as their sum.
    limit : int
        Factor of the right side.
    limit_product : tuple of str
        Names of fields on the right side.
    scale : int
        Factor of the left side.
    less : tuple of (str, int)
        Numbers that are subtracted from fields before these are multiplied: the loads of all
        pipeline stages but one are in flight.
    """

    product: tuple[str, ...]
    limit: int
    limit_product: tuple[str, ...] = ()
    scale: int = 1
    less: tuple[tuple[str, int], ...] = ()

    def holds(self, values: Values) -> Any:
        """Whether it holds for these values: a bool, or an array of bools for arrays."""
        left, right = self.scale, self.limit
        for name in self.product:
            left = left * self._factor(name, values)
        for name in self.limit_product:
            right = right * self._factor(name, values)
        return left <= right

    def _factor(self, name: str, values: Values) -> Any:
        """The value of a field as a factor: tails count as their sum."""
        value = values[name]
        number = sum(value) if isinstance(value, tuple) else value
        return number - sum(count for field, count in self.less if field == name)


@dataclass(frozen=True, slots=True)
class Alternative:
    """A part of a search space with some fields fixed, such as rows in registers.

    Attributes
    ----------
    fixed : dict
        Fields with the same value in all params.
    choices : tuple of Choice
        The other fields. Each of them is in one choice.
    conditions : tuple of AtMost
        Conditions that all hold.
    """

    fixed: dict[str, Any]
    choices: tuple[Choice, ...]
    conditions: tuple[AtMost, ...] = ()

    def has(self, values: Values) -> bool:
        """Whether the conditions hold."""
        return all(condition.holds(values) for condition in self.conditions)

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of all choices."""
        return tuple(name for choice in self.choices for name in choice.fields)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """All values that satisfy the conditions."""
        fields = self.fields
        for chosen in product(*(choice.values for choice in self.choices)):
            values = {**self.fixed, **dict(zip(fields, chain.from_iterable(chosen), strict=True))}
            if self.has(values):
                yield values

    def draw(self, rng: random.Random, tries: int = 64) -> dict[str, Any] | None:
        """Random values that satisfy the conditions. None if no try finds any."""
        for _ in range(tries):
            chosen = [rng.choice(choice.values) for choice in self.choices]
            drawn = zip(self.fields, chain.from_iterable(chosen), strict=True)
            values = {**self.fixed, **dict(drawn)}
            if self.has(values):
                return values
        return None


def _params_or_none(scheduler: str, values: Values) -> HeuristicParams | None:
    try:
        return PARAMS[scheduler](**values)
    except ParamsError:
        return None


@lru_cache(maxsize=8192)
def params_of(scheduler: str, values: tuple[tuple[str, Any], ...]) -> HeuristicParams | None:
    """Params of a scheduler with these fields; None where they exceed the limits of any kernel.

    Cached: many problems have tiles of the same sizes.
    """
    return _params_or_none(scheduler, dict(values))


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """The params that may be tried for a kernel.

    Attributes
    ----------
    scheduler : str
        Its scheduler.
    alternatives : tuple of Alternative
        The parts of the space.
    """

    scheduler: str
    alternatives: tuple[Alternative, ...]

    def __iter__(self) -> Iterator[HeuristicParams]:
        """All params. There may be some thousands."""
        for alternative in self.alternatives:
            for values in alternative:
                made = params_of(self.scheduler, tuple(values.items()))
                if made is not None:
                    yield made

    def draw(self, rng: random.Random) -> HeuristicParams | None:
        """Random params; all alternatives are equally likely."""
        if not self.alternatives:
            return None
        values = rng.choice(self.alternatives).draw(rng)
        return None if values is None else self.params(values)

    def params(self, values: Values) -> HeuristicParams | None:
        """Params with these values; None if they exceed the limits of any kernel."""
        return _params_or_none(self.scheduler, values)

    def to_dict(self) -> dict[str, Any]:
        """Plain data: fields, values and conditions, for other tuners."""
        return {"scheduler": self.scheduler, "alternatives": encode(self.alternatives)}
