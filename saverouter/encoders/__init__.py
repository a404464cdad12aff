"""Queries as numbers: frozen MiniLM and CLIP vectors, and TF-IDF features of the words.

This room knows texts, pictures and arrays. It knows nothing of workloads, outcomes or routers. Vectors are kept on disk
by content, in few files and within a limit, so that a prompt is encoded once on a machine.
"""

from .backend import encoder_name
from .clip import clip_vectors
from .features import ResidualFeatures
from .minilm import WIDTH as MINILM_WIDTH
from .minilm import foreseen, minilm_vectors
from .tokens import token_counts

__all__ = [
    "MINILM_WIDTH",
    "ResidualFeatures",
    "clip_vectors",
    "encoder_name",
    "foreseen",
    "minilm_vectors",
    "token_counts",
]
