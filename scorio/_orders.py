"""Numbers of rankings: every permutation, subset and ranking with ties as an integer, and back."""

from collections.abc import Sequence
from math import comb, factorial

import numpy as np
from numpy.typing import ArrayLike

from scorio.arrays import floats


def lehmer_hash(ranked_list: Sequence[int] | ArrayLike) -> int:
    """Return the number of a permutation in lexicographic order.

    Parameters
    ----------
    ranked_list : sequence of int, shape (n,)
        0..n - 1 in any order.

    Returns
    -------
    int
        In 0..n! - 1 [1]_.

    Raises
    ------
    TypeError
        If an entry is no integer.
    ValueError
        If `ranked_list` is no permutation of 0..n - 1.

    References
    ----------
    .. [1] Lehmer (1960). Teaching combinatorial tricks to a computer. Proceedings of Symposia in Applied
       Mathematics 10, 179-193.

    Examples
    --------
    >>> lehmer_hash([0, 1, 2]), lehmer_hash([1, 2, 0]), lehmer_hash([2, 1, 0])
    (0, 3, 5)
    """
    given = np.asarray(ranked_list)
    if given.size and given.dtype.kind not in "iu":
        raise TypeError(f"ranked_list must hold integers; got {ranked_list!r}")
    entries: list[int] = given.tolist()
    left = list(range(len(entries)))
    if sorted(entries) != left:
        raise ValueError(f"ranked_list must be a permutation of 0..{len(entries) - 1}; got {ranked_list!r}")
    number = 0
    for entry in entries:
        place = left.index(entry)
        number = number * len(left) + place
        left.pop(place)
    return number


def lehmer_unhash(hash_value: int, n: int) -> list[int]:
    """Return the permutation of 0..n - 1 with a number: the inverse of :func:`lehmer_hash`.

    Raises
    ------
    ValueError
        If `hash_value` is not in 0..n! - 1.

    Examples
    --------
    >>> lehmer_unhash(3, 3)
    [1, 2, 0]
    """
    if not 0 <= hash_value < factorial(n):
        raise ValueError(f"hash_value must be in 0..{factorial(n) - 1} for n = {n}; got {hash_value!r}")
    left = list(range(n))
    permutation = []
    for size in range(n, 0, -1):
        place, hash_value = divmod(hash_value, factorial(size - 1))
        permutation.append(left.pop(place))
    return permutation


def ordered_bell(n: int) -> list[int]:
    """Return the ordered Bell (Fubini) numbers of 0..n: how many rankings with ties n items have.

    Examples
    --------
    >>> ordered_bell(4)
    [1, 1, 3, 13, 75]
    """
    numbers = [1]
    for items in range(1, n + 1):
        numbers.append(sum(_rankings_with_first(items, first, numbers) for first in range(1, items + 1)))
    return numbers


def _rankings_with_first(items: int, first: int, numbers: Sequence[int]) -> int:
    """Return how many rankings with ties of `items` items have `first` items on their first rank."""
    return comb(items, first) * numbers[items - first]


def comb_rank_lex(indices: Sequence[int], n: int, k: int) -> int:
    """Return the number of a subset of size k of 0..n - 1 in lexicographic order.

    Parameters
    ----------
    indices : sequence of int
        The k members in ascending order.
    n, k : int
        Size of the set and of the subset.

    Examples
    --------
    >>> [comb_rank_lex(subset, 3, 2) for subset in ([0, 1], [0, 2], [1, 2])]
    [0, 1, 2]
    """
    # The subsets that come later are those of the reversed set that come earlier.
    later = sum(comb(n - 1 - indices[place], k - place) for place in range(k))
    return comb(n, k) - 1 - later


def comb_unrank_lex(r: int, n: int, k: int) -> list[int]:
    """Return the subset of size k of 0..n - 1 with a number: the inverse of :func:`comb_rank_lex`.

    Raises
    ------
    ValueError
        If `r` is not in 0..C(n, k) - 1.

    Examples
    --------
    >>> comb_unrank_lex(2, 3, 2)
    [1, 2]
    """
    if k == 0:
        return []
    if not 0 <= r < comb(n, k):
        raise ValueError(f"r must be in 0..{comb(n, k) - 1} for n = {n} and k = {k}; got {r!r}")
    subset: list[int] = []
    for member in range(n):
        with_it = comb(n - 1 - member, k - len(subset) - 1)
        if r < with_it:
            subset.append(member)
            if len(subset) == k:
                break
        else:
            r -= with_it
    return subset


def blocks_from_rank_list(rank_list: Sequence[float] | ArrayLike, tol: float = 1e-12) -> list[list[int]]:
    """Return the items of each rank, the best rank first.

    Parameters
    ----------
    rank_list : array_like, shape (n,)
        Rank of each item, lower is better.
    tol : float
        Neighbouring ranks that differ by at most this much are one.

    Examples
    --------
    >>> blocks_from_rank_list([2, 1, 2])
    [[1], [0, 2]]
    """
    ranks = floats(rank_list)
    if ranks.ndim != 1 or not np.isfinite(ranks).all():
        raise ValueError(f"rank_list must be finite numbers, shape (n,); got {rank_list!r}")
    order = np.argsort(ranks, kind="stable")
    borders = np.flatnonzero(np.diff(ranks[order]) > tol) + 1
    return [np.sort(block).tolist() for block in np.split(order, borders) if block.size]


def ranking_hash(rank_list: Sequence[float] | ArrayLike, tol: float = 1e-12) -> int:
    """Return the number of a ranking with ties; two rankings share none.

    Rankings are in the order of the size of their first group, then of its members, then of the rest.

    Parameters
    ----------
    rank_list, tol
        As in :func:`blocks_from_rank_list`.

    Returns
    -------
    int
        Below the ordered Bell number of n (:func:`ordered_bell`).

    Examples
    --------
    >>> [ranking_hash(ranks) for ranks in ([0, 1, 2], [0, 1, 1], [1, 0, 1], [0, 0, 0])]
    [0, 2, 5, 12]
    """
    blocks = blocks_from_rank_list(rank_list, tol)
    left = sorted(item for block in blocks for item in block)
    numbers, number = ordered_bell(len(left)), 0
    for block in blocks:
        items = len(left)
        number += sum(_rankings_with_first(items, size, numbers) for size in range(1, len(block)))
        places = list(map(left.index, block))
        number += comb_rank_lex(places, items, len(block)) * numbers[items - len(block)]
        left = [item for item in left if item not in block]
    return number


def unhash_ranking(h: int, n: int) -> list[int]:
    """Return the ranking of n items with a number, as competition ranks: the inverse of :func:`ranking_hash`.

    Raises
    ------
    ValueError
        If `h` is negative or not below the ordered Bell number of n.

    Examples
    --------
    >>> unhash_ranking(5, 3)
    [2, 1, 2]
    """
    numbers = ordered_bell(n)
    if not 0 <= h < numbers[n]:
        raise ValueError(f"h must be in 0..{numbers[n] - 1} for n = {n}; got {h!r}")
    ranks = [0] * n
    left = list(range(n))
    while left:
        size = 1
        while h >= (with_size := _rankings_with_first(len(left), size, numbers)):
            h -= with_size
            size += 1
        subset, h = divmod(h, numbers[len(left) - size])
        best = n - len(left) + 1
        group = [left[place] for place in comb_unrank_lex(subset, len(left), size)]
        for item in group:
            ranks[item] = best
        left = [item for item in left if item not in group]
    return ranks
