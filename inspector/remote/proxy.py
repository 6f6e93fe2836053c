"""The proxy that addresses are asked through: the one that was set for that, and no other."""

from __future__ import annotations

import os
from dataclasses import replace

from inspector.remote.policy import Policy

PROXY_VARIABLE = "INSPECTOR_PROXY"


def with_proxy(policy: Policy) -> Policy:
    """The same through the proxy that INSPECTOR_PROXY names; other programs' variables are not asked."""
    return replace(policy, proxy=os.environ.get(PROXY_VARIABLE, "").strip())
