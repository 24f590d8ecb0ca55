#!/ usr / bin / env python3
""
        "Records what numpy says about sampling, for sampler_test.cpp.

        Run from the repository root : python3 tests /
                                       engine / record_sampling.py >
    tests / engine / data /
        sampling.txt

            One case a line: vocabulary, seed, temperature, top_k, top_p, min_p | kept token ids, best first | their
probabilities | token:log-probability pairs of the five best under the unmodified distribution.
Logits come from a linear congruential generator that the test repeats, in exact multiples of 1/4096.
"""
import numpy as np


def logits_of(n_vocab, seed):
    state, values = seed, []
    for _ in range(n_vocab):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        values.append((state >> 40) % 65536 / 4096.0 - 8.0)
    return np.array(values, dtype=np.float64)


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def kept(logits, temperature, top_k, top_p, min_p):
    x = logits / temperature
    order = np.lexsort((np.arange(len(x)), -x))  # best first, ties by id
    if top_k:
        order = order[:top_k]
    p = softmax(x[order])
    if top_p < 1:
        n = int(np.searchsorted(np.cumsum(p), top_p)) + 1
        order, p = order[:n], p[:n]
    order = order[p >= min_p * p[0]]
    return order, softmax(x[order])


for n_vocab, seed in [(8, 1), (300, 2), (5000, 3)]:
    logits = logits_of(n_vocab, seed)
    for temperature, top_k, top_p, min_p in [
        (1.0, 5, 1.0, 0.0), (0.7, 0, 0.9, 0.0), (1.5, 0, 0.5, 0.0), (1.0, 0, 1.0, 0.2), (0.8, 40, 0.95, 0.05),
        (2.0, 3, 0.6, 0.0), (0.1, 0, 0.99, 0.01), (3.0, 0, 0.8, 0.001),
    ]:
        ids, p = kept(logits, temperature, top_k, top_p, min_p)
        logprobs = np.log(softmax(logits))
        best = np.lexsort((np.arange(n_vocab), -logits))[:5]
        print(n_vocab, seed, temperature, top_k, top_p, min_p, "|", *ids[:200], "|",
              *(f"{v:.9g}" for v in p[:200]), "|", *(f"{i}:{logprobs[i]:.9g}" for i in best))
