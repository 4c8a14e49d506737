"""Whether an environment, an allocation and a binding are sane, before a job is lost to them."""
