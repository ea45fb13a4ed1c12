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
    """Fields that are chosen together.

    Attributes
    ----------
    fields : tuple of str
        Names of fields of the params.
    values : tuple of tuple
        What they may be: each a value for each of the fields.
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
        Fields. Of tails it is their sum that counts.
    limit : int
        The most of it, times the product of ``limit_product``.
    limit_product : tuple of str
        Fields.
    scale : int
        Factor of the left side.
    less : tuple of (str, int)
        What is taken off fields before they are multiplied: of the stages of a pipeline all but
        one are loaded ahead.
    """

    product: tuple[str, ...]
    limit: int
    limit_product: tuple[str, ...] = ()
    scale: int = 1
    less: tuple[tuple[str, int], ...] = ()

    def holds(self, values: Values) -> Any:
        """Whether it does, of a value for each field: a bool, or an array of them for arrays."""
        left, right = self.scale, self.limit
        for name in self.product:
            left = left * self._factor(name, values)
        for name in self.limit_product:
            right = right * self._factor(name, values)
        return left <= right

    def _factor(self, name: str, values: Values) -> Any:
        """A field as a factor: of tails their sum."""
        value = values[name]
        number = sum(value) if isinstance(value, tuple) else value
        return number - sum(count for field, count in self.less if field == name)


@dataclass(frozen=True, slots=True)
class Alternative:
    """Params of one kind, such as rows in registers, or rows read by loops.

    Attributes
    ----------
    fixed : dict
        Fields that are the same in all of them.
    choices : tuple of Choice
        The others. Each field is in one choice.
    conditions : tuple of AtMost
        All of them hold.
    """

    fixed: dict[str, Any]
    choices: tuple[Choice, ...]
    conditions: tuple[AtMost, ...] = ()

    def has(self, values: Values) -> bool:
        """Whether the conditions hold."""
        return all(condition.holds(values) for condition in self.conditions)

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that are chosen."""
        return tuple(name for choice in self.choices for name in choice.fields)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """All values for which the conditions hold."""
        fields = self.fields
        for chosen in product(*(choice.values for choice in self.choices)):
            values = {**self.fixed, **dict(zip(fields, chain.from_iterable(chosen), strict=True))}
            if self.has(values):
                yield values

    def draw(self, rng: random.Random, tries: int = 64) -> dict[str, Any] | None:
        """Random values for which the conditions hold. None where no try finds some."""
        for _ in range(tries):
            chosen = [rng.choice(choice.values) for choice in self.choices]
            drawn = zip(self.fields, chain.from_iterable(chosen), strict=True)
            values = {**self.fixed, **dict(drawn)}
            if self.has(values):
                return values
        return None


def _made(scheduler: str, values: Values) -> HeuristicParams | None:
    try:
        return PARAMS[scheduler](**values)
    except ParamsError:
        return None


@lru_cache(maxsize=8192)
def params_of(scheduler: str, values: tuple[tuple[str, Any], ...]) -> HeuristicParams | None:
    """Params of a scheduler with these fields; None where they exceed the limits of any kernel.

    Made and checked once: problems have tiles of the same sizes.
    """
    return _made(scheduler, dict(values))


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """The params that a kernel may have.

    Attributes
    ----------
    scheduler : str
        Its scheduler.
    alternatives : tuple of Alternative
        Each params that can be tried are of one of them.
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
        """Random params, each alternative as likely as the others."""
        if not self.alternatives:
            return None
        values = rng.choice(self.alternatives).draw(rng)
        return None if values is None else self.params(values)

    def params(self, values: Values) -> HeuristicParams | None:
        """Params of the values; None where they exceed the limits of any kernel."""
        return _made(self.scheduler, values)

    def to_dict(self) -> dict[str, Any]:
        """Plain data: fields, values and conditions, for a tuner of one's own."""
        return {"scheduler": self.scheduler, "alternatives": encode(self.alternatives)}
