"""Where many calculations run: in this process, in several, or on a Dask cluster; and logs larger than memory.

It knows workloads and routers, but not what is calculated. Dask is optional and loaded when it is used.
"""

from .logs import route_log
from .parallel import chosen, compute_all, on

__all__ = ["chosen", "compute_all", "on", "route_log"]
