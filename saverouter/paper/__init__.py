"""What the paper set, printed and said: settings, published tables, statements about them, facts of the data.

It may look at workloads, judging and routers. It runs no experiments: a statement is a function of a table.
"""

from .evidence import short
from .predicates import SPARSE
from .published import main_results, published
from .settings import paper_options, published_settings

__all__ = ["SPARSE", "main_results", "paper_options", "published", "published_settings", "short"]
