"""The key database of cross-attention: keys are stored at each refresh, and later images only score them.

It serves keys that change less often than queries. `ExactLookup` ranks in O(L·m), `HashLookup` in O(L·m′) operations
on single bits, and `SamplingTree` draws in O(m·log L); each takes the pooled queries, `pool_queries(φ(Q))`.
"""

from iap.attention.search.exact_lookup import ExactLookup
from iap.attention.search.sampling_tree import SamplingTree
from iap.attention.search.sign_hashing import HashLookup

__all__ = ["ExactLookup", "HashLookup", "SamplingTree"]
