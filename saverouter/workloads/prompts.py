"""Readable prompts for simulated queries, put together from the templates and vocabularies of a specification.

The words matter: a task is recognised by its subject and topics, and topics and levels carry part of a query's
difficulty. People, places, settings and formats carry none, like most words of a real prompt.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Wording:
    """Prompts, and which of their words bear on difficulty: two topics and a level, by position in the specification."""

    prompts: np.ndarray
    topics: np.ndarray  # (n, 2)
    level: np.ndarray


def compose(spec: dict, task: np.ndarray, rng: np.random.Generator) -> Wording:
    """A prompt for every entry of ``task``, which gives each query's task by position."""
    tasks, families = spec["tasks"], spec["families"]
    size = len(task)
    counts = np.array([len(entry["topics"]) for entry in tasks])[task]
    first = rng.integers(counts)
    topics = np.column_stack([first, (first + rng.integers(1, counts)) % counts])
    level = rng.integers(len(spec["levels"]), size=size)
    family = np.array([list(families).index(entry["family"]) for entry in tasks])[task]

    def pick(part: str) -> np.ndarray:
        """One entry of the family's list for every query."""
        lists = [values[part] for values in families.values()]
        choice = rng.integers(np.array([len(values) for values in lists])[family])
        return [lists[which][entry] for which, entry in zip(family.tolist(), choice.tolist(), strict=True)]

    def draw(part: str) -> np.ndarray:
        return rng.choice(np.array(spec[part], dtype=object), size=size)

    words = np.array([entry["word"] for entry in spec["levels"]], dtype=object)[level]
    columns = (task.tolist(), topics.tolist(), words, pick("templates"), pick("formats"))
    scenery = (draw("settings"), draw("people"), draw("places"))
    prompts = np.empty(size, dtype=object)
    for row, (which, (topic, other), word, template, form, setting, person, place) in enumerate(
        zip(*columns, *scenery, strict=True)
    ):
        entry = tasks[which]
        text = template.format(
            subject=entry["subject"], topic=entry["topics"][topic], other=entry["topics"][other], level=word,
            setting=setting.format(person=person, place=place), format=form,
        )  # fmt: skip
        prompts[row] = text[0].upper() + text[1:]
    return Wording(prompts, topics, level)
