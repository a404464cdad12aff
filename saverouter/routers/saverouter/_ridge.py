"""Ridge regressions that share one sparse feature matrix, each on some of its rows.

The steps are those of LSQR as scipy takes them (Paige and Saunders, 1982), with the same rules for stopping, so that
``Ridge(solver="lsqr")`` is the tested reference. Two things save time: rows are used where they lie instead of
being copied for every regression, and a step reads each of them once for both of its products.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numba import njit

from ...threads import in_threads

SHARE = 2_500  # rows that a thread multiplies at a time
SMALLEST = 1e-8  # smallest reciprocal condition, scipy's default: below it the iteration stops
EPS = np.finfo(np.float64).eps


def ridges(
    features: sp.csr_matrix, rows: np.ndarray, models: np.ndarray, target: np.ndarray, *, chosen, n_models, ridge,
    tolerance,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """One regression per model of ``chosen``: (D, n_models) weights and (n_models,) intercepts, 0 for the other models.

    Observation i is the row ``rows[i]`` of the features, the model ``models[i]`` and the value ``target[i]``.
    """
    indices = features.indices
    if features.shape[1] <= 2**16:  # half as long: reading them takes most of the time
        indices = indices.astype(np.uint16)
    matrix = features.data, indices, features.indptr
    weights, intercepts = np.zeros((features.shape[1], n_models)), np.zeros(n_models)

    def learn(model: int) -> None:
        mine, x = np.flatnonzero(models == model), np.empty(features.shape[1])
        centre = target[mine].mean()
        shift = _lsqr(*matrix, rows[mine], target[mine] - centre, np.sqrt(ridge), tolerance, x)
        weights[:, model], intercepts[model] = x, centre - shift

    observed = np.bincount(models, minlength=n_models)
    # The longest first, so that no thread starts it last.
    in_threads(learn, sorted(chosen, key=lambda model: -observed[model]))
    return weights, intercepts


def predictions(features: sp.csr_matrix, weights: np.ndarray) -> np.ndarray:
    """``features @ weights`` to the last bit, rows shared among the cores."""
    if features.shape[1] != weights.shape[0]:  # compiled code would read beyond the end
        raise ValueError(
            f"queries with {features.shape[1]} features, but weights for {weights.shape[0]}; encode them alike"
        )
    found, matrix = np.zeros((features.shape[0], weights.shape[1])), (features.data, features.indices, features.indptr)
    in_threads(
        lambda start: _multiply(*matrix, weights, start, found[start : start + SHARE]), range(0, len(found), SHARE)
    )
    return found


@njit(cache=True, nogil=True)
def _multiply(data, indices, indptr, weights, start, found):
    """Four features at a time, added in their order: a row's sums are read and written a quarter as often."""
    for row in range(len(found)):
        sums, at, end = found[row], indptr[start + row], indptr[start + row + 1]
        while at + 4 <= end:
            a, b, c, d = data[at], data[at + 1], data[at + 2], data[at + 3]
            first, second = weights[indices[at]], weights[indices[at + 1]]
            third, fourth = weights[indices[at + 2]], weights[indices[at + 3]]
            for model in range(len(sums)):
                total = ((sums[model] + a * first[model]) + b * second[model]) + c * third[model]
                sums[model] = total + d * fourth[model]
            at += 4
        for rest in range(at, end):
            for model in range(len(sums)):
                sums[model] += data[rest] * weights[indices[rest], model]


@njit(cache=True, nogil=True, fastmath=True)
def _dot(one, other):
    """A plain loop: BLAS would start threads of its own, and round differently with their number."""
    total = 0.0
    for place in range(len(one)):
        total += one[place] * other[place]
    return total


@njit(cache=True)
def _start(data, indices, indptr, rows, target, means, product):
    """means <- those of the rows, product <- A'target, where A is the rows less their means."""
    means[:] = 0.0
    product[:] = 0.0
    for place in range(len(rows)):
        start, end = indptr[rows[place]], indptr[rows[place] + 1]
        columns, values, value = indices[start:end], data[start:end], target[place]
        for at in range(len(columns)):
            means[columns[at]] += values[at]
            product[columns[at]] += value * values[at]
    means /= len(rows)
    product -= means * target.sum()


@njit(cache=True)
def _step(data, indices, indptr, rows, means, u, alpha, v, product):
    """u <- A v - alpha u and product <- A'u."""
    product[:] = 0.0
    shift = _dot(means, v)
    total = 0.0
    for place in range(len(rows)):
        start, end = indptr[rows[place]], indptr[rows[place] + 1]
        columns, values = indices[start:end], data[start:end]
        value = 0.0
        for at in range(len(columns)):
            value += values[at] * v[columns[at]]
        value -= shift + alpha * u[place]
        u[place] = value
        total += value
        for at in range(len(columns)):
            product[columns[at]] += value * values[at]
    for column in range(len(product)):
        product[column] -= means[column] * total


@njit(cache=True, nogil=True)
def _lsqr(data, indices, indptr, rows, target, damp, tolerance, x):
    """Fills ``x`` with the weights and returns their product with the means of the rows."""
    x[:] = 0.0
    means, v = np.empty_like(x), np.empty_like(x)
    product = np.empty_like(x)
    _start(data, indices, indptr, rows, target, means, v)
    size = beta = np.sqrt(_dot(target, target))
    alpha = np.sqrt(_dot(v, v)) / beta if beta > 0 else 0.0
    if alpha == 0:
        return 0.0
    u = target / beta
    v /= alpha * beta
    w = v.copy()
    rhobar, phibar = alpha, beta
    norm = spread = lost = length = z = sine2 = 0.0
    cosine2 = -1.0
    for _ in range(2 * len(x)):
        _step(data, indices, indptr, rows, means, u, alpha, v, product)
        beta = np.sqrt(_dot(u, u))
        if beta > 0:
            u /= beta
            norm = np.sqrt(norm**2 + alpha**2 + beta**2 + damp**2)
            for column in range(len(v)):
                v[column] = product[column] / beta - beta * v[column]
            alpha = np.sqrt(_dot(v, v))
            if alpha > 0:
                v /= alpha
        # Two rotations, for the ridge and for beta, leave an upper bidiagonal system.
        damped = np.hypot(rhobar, damp)
        psi, phibar = damp / damped * phibar, rhobar / damped * phibar
        rho = np.hypot(damped, beta)
        cosine, sine = damped / rho, beta / rho
        theta, rhobar = sine * alpha, -cosine * alpha
        phi, phibar = cosine * phibar, sine * phibar
        spread += _dot(w, w) / rho**2
        for column in range(len(x)):
            x[column] += phi / rho * w[column]
            w[column] = v[column] - theta / rho * w[column]
        # One more, from the right, estimates the length of x; then the tests.
        right, gambar = phi - sine2 * rho * z, -cosine2 * rho
        reach = norm * np.sqrt(length + (right / gambar) ** 2) / size
        gamma = np.hypot(gambar, theta)
        cosine2, sine2, z = gambar / gamma, theta / gamma, right / gamma
        length += z**2
        lost += psi**2
        left = np.sqrt(phibar**2 + lost)
        slope = alpha * abs(sine * phi) / (norm * left + EPS)
        condition = 1 / (norm * np.sqrt(spread) + EPS)
        if left / size <= tolerance * (1 + reach) or slope <= tolerance or condition <= SMALLEST:
            break
        if 1 + slope <= 1 or 1 + left / size / (1 + reach) <= 1:  # no digit is left to gain
            break
    return _dot(means, x)
