"""The planting of JAX: what it adds, what it records, the law of its scores, and loops that misuse it."""

import numpy as np
import pytest
from scipy.stats import binomtest, ks_2samp

jax = pytest.importorskip("jax", reason="needs the extra jax")
pytest.importorskip("jax_privacy", reason="needs the extra jax")

import jax.numpy as jnp  # noqa: E402
import optax  # noqa: E402
from jax_privacy.noise_addition import gaussian_privatizer  # noqa: E402

from lidp import AuditFailed, InvalidArgument  # noqa: E402
from lidp.integrations.coordinate_canaries import CoordinateRecords, ParameterGroups  # noqa: E402
from lidp.integrations.jax_planting import Planting, flatten  # noqa: E402
from lidp.training.transcript import ClaimedSteps, TranscriptRecorder  # noqa: E402

SHAPES = {"dense": {"bias": (3,), "weights": (4, 5)}, "scale": ()}
GROUPS = ParameterGroups(("dense/bias", "dense/weights", "scale"), ((3,), (4, 5), ()))


def tree(fill, dtype=jnp.float32):
    return jax.tree.map(lambda shape: jnp.full(shape, fill, dtype), SHAPES, is_leaf=lambda x: isinstance(x, tuple))


def flat(values):
    return np.concatenate([np.ravel(leaf) for leaf in flatten(values)[1]])


def planting_of(canaries, inserted, groups=GROUPS, claimed=ClaimedSteps(1.0, 1.0, 1.0), seed=0):  # noqa: B008
    data = CoordinateRecords([]).with_canaries(canaries[inserted]).watching(canaries)
    return Planting.begin(data.canaries(), groups, claimed, np.random.default_rng(seed))


def draw(size, groups=GROUPS, seed=0):
    return groups.canaries.draw(np.random.default_rng(seed), size)


def test_names_of_arrays_are_their_paths():
    names, leaves, _ = flatten(tree(0.0))
    assert names == GROUPS.names
    assert tuple(leaf.shape for leaf in leaves) == GROUPS.shapes
    assert flatten(jnp.zeros(3))[0] == ("parameters",)
    assert flatten([jnp.zeros(3), optax.EmptyState(), (jnp.zeros(1),)])[0] == ("0", "2/0")


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
@pytest.mark.parametrize("compiled", [False, True])
def test_add_changes_the_sums_by_the_inserted_canaries(dtype, compiled):
    canaries = draw(10)
    inserted = np.arange(10) % 2 == 0

    def add(sums, planting):
        return planting.add(sums, clip_norm=2.0)

    sums, planting = (jax.jit(add) if compiled else add)(tree(1.0, dtype), planting_of(canaries, inserted))
    expected = np.ones(24)
    expected[canaries[inserted, 0].astype(int)] += 2 * canaries[inserted, 1]
    np.testing.assert_array_equal(flat(sums).astype(float), expected)
    assert all(leaf.dtype == dtype for leaf in jax.tree.leaves(sums))
    evidence = planting.released(jax.tree.map(lambda leaf: leaf + 1, sums)).transcript(10).evidence
    # In units of the clipping norm, the residual is the canary plus 1/2.
    np.testing.assert_allclose(evidence[:, 0, 1], inserted + canaries[:, 1] / 2)


@pytest.mark.parametrize("steps", [1, 15, 16, 17, 100])
@pytest.mark.parametrize("rate", [0.05, 1.0])
def test_evidence_equals_that_of_the_recorder_of_other_loops(steps, rate):
    canaries, claimed = draw(20), ClaimedSteps(0.7, rate, 1.0)
    planting, recorder = planting_of(canaries, [], claimed=claimed), TranscriptRecorder(20)
    rng = np.random.default_rng(steps)

    @jax.jit
    def step(planting, noise):
        sums, planting = planting.add(tree(3.0), clip_norm=0.5)
        return planting.released(jax.tree.map(jnp.add, sums, noise))

    for _ in range(steps):
        noise = jax.tree.map(lambda leaf: rng.normal(size=leaf.shape).astype(np.float32), tree(0.0))
        planting = step(planting, noise)
        products = 0.5 * canaries[:, 1] * flat(noise)[canaries[:, 0].astype(int)]
        recorder.add(products, np.full(20, 0.25), ClaimedSteps(0.7, rate, 0.5))
    transcript, expected = planting.transcript(20), recorder.transcript()
    assert transcript.steps == expected.steps == steps
    np.testing.assert_allclose(transcript.evidence, expected.evidence, rtol=1e-4, atol=1e-4)
    assert transcript.group_names == GROUPS.names
    np.testing.assert_array_equal(transcript.groups, GROUPS.locate(canaries[:, 0].astype(int))[0])


def test_canaries_are_sampled_with_the_given_rate():
    """Fails with probability 1e-6 if it holds."""
    size, steps, rate = 1000, 200, 0.1
    groups = ParameterGroups(("parameters",), ((size,),))
    planting = planting_of(draw(size, groups), np.arange(size), groups, ClaimedSteps(1.0, 0.5, 1.0))

    def step(planting, _):
        sums, planting = planting.add(jnp.zeros(size), clip_norm=1.0, rate=rate)
        return planting.released(sums), jnp.abs(sums)

    sampled = np.asarray(jax.lax.scan(step, planting, length=steps)[1])
    assert set(np.unique(sampled)) == {0.0, 1.0}
    assert binomtest(int(sampled.sum()), size * steps, rate).pvalue > 5e-7
    assert binomtest(int((sampled[1:] * sampled[:-1]).sum()), size * (steps - 1), rate**2).pvalue > 5e-7


def release_all_steps(planting, key, size, steps, noise, **options):
    """Return the last planting and the last parameters of a run whose noise is that of jax-privacy."""
    privatizer = planting.privatizer(gaussian_privatizer(stddev=0.5 * noise, prng_key=key), clip_norm=0.5, **options)

    def step(carry, _):
        parameters, state = carry
        sums = jnp.sin(parameters)  # as good as any clipped gradients
        noisy, state = privatizer.update(sums, state, parameters)
        return (parameters - 0.1 * noisy, state), None

    start = jnp.zeros(size)
    (parameters, state), _ = jax.jit(lambda: jax.lax.scan(step, (start, privatizer.init(start)), length=steps))()
    return state.planting, parameters


def simulated_log_ratios(rng, inserted, size, steps, noise, rate):
    """Draw the score of a canary directly from the pair of distributions that the accountant assumes."""
    z = noise * rng.standard_normal((size, steps)) + inserted * (rng.random((size, steps)) < rate)
    return np.log1p(rate * np.expm1((z - 0.5) / noise**2)).sum(axis=1)


@pytest.mark.parametrize("inserted", [True, False])
@pytest.mark.parametrize("rate", [0.1, 1.0])
def test_scores_have_the_law_that_the_accountant_assumes(rate, inserted):
    """Fails with probability 1e-3 each if it holds."""
    size, steps, noise = 4000, 40, 0.8
    groups = ParameterGroups(("parameters",), ((size,),))
    chosen = np.arange(size) % 2 == 0
    planting = planting_of(draw(size, groups), chosen, groups, ClaimedSteps(noise, rate, 1.0), seed=1)
    last, _ = release_all_steps(planting, jax.random.key(2), size, steps, noise)
    scores = last.transcript(size).log_ratios[chosen == inserted]
    expected = simulated_log_ratios(np.random.default_rng(3), inserted, 40_000, steps, noise, rate)
    assert ks_2samp(scores, expected).pvalue > 1e-3
    other = simulated_log_ratios(np.random.default_rng(3), not inserted, 40_000, steps, noise, rate)
    assert ks_2samp(scores, other).pvalue < 1e-6  # the test can tell the two laws apart


def test_watching_changes_nothing_of_the_training():
    size = 60
    groups = ParameterGroups(("parameters",), ((size,),))
    canaries, claimed = draw(20, groups), ClaimedSteps(1.0, 0.5, 1.0)
    data = CoordinateRecords([]).with_canaries(canaries[:10])
    finals = []
    for watched in (canaries[:0], canaries[5:7], canaries, canaries[::-1]):
        rows = data.watching(watched).canaries()
        planting = Planting.begin(rows, groups, claimed, np.random.default_rng(4))
        last, parameters = release_all_steps(planting, jax.random.key(5), size, 30, 1.0)
        finals.append(np.asarray(parameters))
        assert last.transcript(len(watched)).evidence.shape[0] == len(watched)
    for final in finals[1:]:
        np.testing.assert_array_equal(final, finals[0])
    _, without = release_all_steps(planting_of(canaries, [], groups, claimed), jax.random.key(5), size, 30, 1.0)
    assert not np.array_equal(without, finals[0])  # canaries do change it


def test_a_clipping_norm_may_change_within_compiled_code():
    canaries = draw(10)

    @jax.jit
    def step(planting, clip_norm):
        sums, planting = planting.add(tree(0.0), clip_norm=clip_norm)
        return planting.released(sums)

    planting = planting_of(canaries, np.arange(10))
    for clip_norm in (0.1, 3.0):
        planting = step(planting, clip_norm)
    np.testing.assert_allclose(planting.transcript(10).evidence[:, :, 1], 1.0, rtol=1e-6)


def test_misused_steps_end_the_audit():
    planting = planting_of(draw(10), np.arange(5))
    sums, within = planting.add(tree(0.0), clip_norm=1.0)
    with pytest.raises(AuditFailed, match="planting.add was called twice in one step"):
        within.add(sums, clip_norm=1.0)
    with pytest.raises(AuditFailed, match="released was called without planting.add"):
        planting.released(sums)
    with pytest.raises(AuditFailed, match="the sums of clipped gradients have the arrays dense/bias, dense/weights, but"):
        planting.add({"dense": sums["dense"]}, clip_norm=1.0)
    with pytest.raises(AuditFailed, match=r"the noisy sums have shape \(1,\) at scale, but .* have \(\)"):
        within.released(sums | {"scale": jnp.zeros(1)})
    with pytest.raises(InvalidArgument, match="clip_norm must be above 0"):
        planting.add(sums, clip_norm=0.0)
    with pytest.raises(InvalidArgument, match="rate must be above 0"):
        planting.add(sums, clip_norm=1.0, rate=0.0)
    with pytest.raises(AuditFailed, match="called without planting.add"):  # the same within compiled code
        jax.jit(lambda planting: planting.released(tree(0.0)))(planting)
