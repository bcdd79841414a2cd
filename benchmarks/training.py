"""DP-SGD steps against Opacus (hooks and ghost clipping) and jax-privacy, in one run and on one core each.

Fashion-MNIST (60,000 x 784 bytes, ten classes), Poisson batches of mean 100, clipping, noise. Our loop skips pixels that are 0,
so it also runs on made-up data of the same shape without zeros. Each peer is used as its documentation does: Opacus with its own
loader, jax-privacy jitted (with batches of a fixed size, as every new size would be compiled anew). The floor is the time of the
matrix products of a step alone, at the rate of a large product of single precision on one core. Times are processor times, and
the best of interleaved rounds counts: the machine may be shared. ``LIDP_BEFORE=FOLDER`` adds another version of lidp, whose
checkout is in that folder, to the same rounds.

Then, in a process of its own: the peak memory of an audit's worth of models on the real data, and what a thousand models of 30
epochs take on two cores. Needs the extra ``peers``.
"""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import lidp
from lidp._runtime.workers import use_one_core
from lidp.errors import InvalidData
from lidp.training import DPSGD, Kind, Network, TrainingSet

RECORDS, FEATURES, CLASSES, BATCH = 60_000, 784, 10, 100
ROUNDS = 7
STEPS = {"linear": 30 * RECORDS // BATCH, "MLP 256-256": 50}
"""Steps of our trainings; whole ones of the linear model, since the norms of all records are computed once per training."""
TURN = 0.25  # seconds per round, at least
PRODUCT = 1024  # rows and columns of the matrices whose product gives the floor
NETWORKS = {"linear": (), "MLP 256-256": (256, 256)}
WANTED = {
    ("linear", "Opacus, hooks"): 45,
    ("linear", "Opacus, ghost clipping"): 15,
    ("MLP 256-256", "Opacus, hooks"): 50,
    ("MLP 256-256", "Opacus, ghost clipping"): 5.5,
}
AT_MOST = {"linear": 3.3, "MLP 256-256": 1.7}
"""Times the floor that a step may take."""
Steps = Callable[[int], float]
"""Runs so many steps and returns the processor time in seconds."""


def ours(x: np.ndarray, y: np.ndarray, hidden: tuple[int, ...]) -> Steps:
    records = TrainingSet(x, y, Kind.EXAMPLE, unit=1 / 255)

    def run(steps: int) -> float:
        trainer = DPSGD(Network(FEATURES, CLASSES, hidden), BATCH / RECORDS, BATCH, steps, 0.01, 1.0)
        start = time.process_time()
        trainer.train(records, np.random.default_rng(0))
        return time.process_time() - start

    return run


def another_version(checkout: Path, hidden: tuple[int, ...]) -> Steps:
    """Return the steps of the version of lidp in ``checkout``. They run in a process of their own, which waits in between."""
    source = checkout.resolve() / "src"
    process = subprocess.Popen(  # noqa: S603  # the version that the user names
        [sys.executable, "-m", "benchmarks.training", str(source), *map(str, hidden)],
        env=os.environ | {"PYTHONPATH": str(source)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def run(steps: int) -> float:
        print(steps, file=process.stdin, flush=True)
        answer = process.stdout.readline()
        return float(answer) if answer else sys.exit(f"the version of lidp in {checkout} was not measured; see above")

    return run


def answer_with_seconds(source: Path, hidden: tuple[int, ...]) -> None:
    """Run as many steps as each line of the standard input says, and print the seconds that they took."""
    if source not in Path(lidp.__file__).parents:
        sys.exit(f"there is no lidp in {source}")
    run = ours(*images(), hidden)
    for line in sys.stdin:
        print(run(int(line)), flush=True)


def floor(hidden: tuple[int, ...]) -> Steps:
    """Return the time of the products of a step: forward, backward through all layers but the first, and for the gradient."""
    shapes = list(itertools.pairwise((FEATURES, *hidden, CLASSES)))
    products = sum((2 if layer == 0 else 3) * inputs * outputs for layer, (inputs, outputs) in enumerate(shapes))
    matrix = np.random.default_rng(0).standard_normal((PRODUCT, PRODUCT)).astype(np.float32)
    out = np.empty_like(matrix)

    def run(steps: int) -> float:
        start = time.process_time()
        np.dot(matrix, matrix, out=out)
        return steps * (time.process_time() - start) * BATCH * products / PRODUCT**3

    return run


def opacus(x: np.ndarray, y: np.ndarray, hidden: tuple[int, ...], mode: str) -> Steps:
    import torch
    from opacus import PrivacyEngine

    torch.set_num_threads(1)
    layers: list[torch.nn.Module] = []
    for inputs, outputs in itertools.pairwise((FEATURES, *hidden, CLASSES)):
        layers += [torch.nn.Linear(inputs, outputs), torch.nn.ReLU()]
    model: torch.nn.Module = torch.nn.Sequential(*layers[:-1])
    records = torch.utils.data.TensorDataset(torch.from_numpy(x / np.float32(255)), torch.from_numpy(y))
    model, optimizer, *rest = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.01),
        data_loader=torch.utils.data.DataLoader(records, batch_size=BATCH),
        criterion=torch.nn.CrossEntropyLoss(),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        grad_sample_mode=mode,
    )
    criterion = rest[0] if mode == "ghost" else torch.nn.CrossEntropyLoss()
    loader = rest[-1]

    def run(steps: int) -> float:
        batches = iter(loader)
        start = time.process_time()
        for _ in range(steps):
            features, labels = next(batches)
            optimizer.zero_grad()
            criterion(model(features), labels).backward()
            optimizer.step()
        return time.process_time() - start

    return run


def jax_privacy(x: np.ndarray, y: np.ndarray, hidden: tuple[int, ...]) -> Steps:
    import jax
    import jax.numpy as jnp
    from jax_privacy import clipped_grad

    key = jax.random.key(0)
    start = [
        (jax.random.normal(key, (a, b)) * (2 / a) ** 0.5, jnp.zeros(b))
        for a, b in itertools.pairwise((FEATURES, *hidden, CLASSES))
    ]
    features_of, labels_of = jnp.asarray(x, jnp.float32) / 255, jnp.asarray(y)

    def loss(parameters, features, label):
        signal = features
        for k, (weights, bias) in enumerate(parameters):
            signal = signal @ weights + bias
            signal = jax.nn.relu(signal) if k < len(parameters) - 1 else signal
        return -jax.nn.log_softmax(signal)[label]

    gradient = clipped_grad(loss, l2_clip_norm=1.0, batch_argnums=(1, 2), keep_batch_dim=False)

    @jax.jit
    def step(parameters, key):
        sampling, noise = jax.random.split(key)
        batch = jax.random.randint(sampling, (BATCH,), 0, RECORDS)
        leaves, tree = jax.tree.flatten(gradient(parameters, features_of[batch], labels_of[batch]))
        keys = jax.random.split(noise, len(leaves))
        noisy = [g + jax.random.normal(k, g.shape) for g, k in zip(leaves, keys, strict=True)]
        return jax.tree.map(lambda p, g: p - 0.01 / BATCH * g, parameters, jax.tree.unflatten(tree, noisy))

    def run(steps: int) -> float:
        keys = list(jax.random.split(jax.random.key(1), steps + 1))
        now = jax.block_until_ready(step(start, keys.pop()))
        began = time.process_time()
        for one in keys:
            now = step(now, one)
        jax.block_until_ready(now)
        return time.process_time() - began

    return run


def images() -> tuple[np.ndarray, np.ndarray]:
    """Return the images of Fashion-MNIST as bytes, and their labels."""
    from lidp.data import load_fashion_mnist

    data = load_fashion_mnist()
    return data.x, data.y


def compare() -> None:
    x, y = images()
    no_zeros = np.random.default_rng(0).integers(1, 256, x.shape, dtype=np.uint8)
    for name, hidden in NETWORKS.items():
        steps = 10 if hidden else 100
        ways: dict[str, tuple[Steps, int]] = {
            "lidp": (ours(x, y, hidden), STEPS[name]),
            "lidp, no zeros": (ours(no_zeros, y, hidden), STEPS[name]),
            "floor": (floor(hidden), 1),
        }
        if "LIDP_BEFORE" in os.environ:
            ways["lidp, before"] = (another_version(Path(os.environ["LIDP_BEFORE"]), hidden), STEPS[name])
        for label, make in {
            "Opacus, hooks": lambda hidden=hidden: opacus(x, y, hidden, "hooks"),
            "Opacus, ghost clipping": lambda hidden=hidden: opacus(x, y, hidden, "ghost"),
            "jax-privacy": lambda hidden=hidden: jax_privacy(x, y, hidden),
        }.items():
            try:
                ways[label] = (make(), steps if "Opacus" in label else steps // 5)
            except ImportError as error:
                print(f"{label}: not measured ({error})")
        for run, _ in ways.values():
            run(3)  # compiles, warms up
        # Round by round, so that a busy moment of the machine falls on all of them.
        seconds_by_label: dict[str, list[float]] = {label: [] for label in ways}
        for _ in range(ROUNDS):
            for label, (run, count) in ways.items():
                spent = 0.0
                while spent < TURN:  # short runs are repeated: all get about as much time to run undisturbed
                    seconds = run(count)
                    seconds_by_label[label].append(seconds / count)
                    spent += TURN / 10 if label == "floor" else seconds
        best = {label: min(seconds) for label, seconds in seconds_by_label.items()}
        floor_seconds, dense_seconds = best.pop("floor"), best.pop("lidp, no zeros")
        print(
            f"{name}, lidp: {best['lidp'] * 1e6:,.0f} µs per step, {best['lidp'] / floor_seconds:.2f} times the floor of "
            f"{floor_seconds * 1e6:,.0f} µs (asked: at most {AT_MOST[name]}); on data without zeros {dense_seconds * 1e6:,.0f} µs"
        )
        for label in list(best)[1:]:
            wanted = WANTED.get((name, label))
            goal = "" if wanted is None else f" (asked: at least {wanted})"
            print(
                f"{name}, {label}: {best[label] * 1e6:,.0f} µs per step, {best[label] / best['lidp']:.1f} times ours{goal}"
            )


def alone() -> None:
    """Peak memory and models a minute on the real data, two threads; meant for a process that does nothing else."""
    from lidp.data import load_fashion_mnist

    data = load_fashion_mnist()
    records = TrainingSet(data.x, data.y, Kind.EXAMPLE, unit=data.unit)
    steps = 30 * len(data) // BATCH
    trainer = DPSGD(Network(FEATURES, CLASSES), BATCH / len(data), BATCH, steps, 0.02, 1.0)
    DPSGD(Network(FEATURES, CLASSES), BATCH / len(data), BATCH, 2, 0.02, 1.0).train(records, np.random.default_rng(0))
    models = 32
    start = time.perf_counter()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda rng: trainer.train(records, rng), np.random.default_rng(0).spawn(models)))
    minutes = (time.perf_counter() - start) / 60 * 1000 / models
    # Not getrusage: that counts what the parent had when it forked this process.
    peak = int(re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())[1]) / 1024
    print(f"1,000 linear models of 30 epochs on two cores: {minutes:.1f} minutes, from {models} (asked: below 20)")
    print(f"peak memory with Fashion-MNIST loaded: {peak:,.0f} MB (asked: below 400)")


def main() -> None:
    warnings.simplefilter("ignore")
    use_one_core()
    try:
        compare()
    except InvalidData as error:
        sys.exit(f"not measured: {error}")
    try:
        subprocess.run([sys.executable, "-m", "benchmarks.training"], check=True)  # this very file
    except subprocess.CalledProcessError:
        print("the part on real data failed; see above")


if __name__ == "__main__":
    use_one_core()
    try:
        if sys.argv[1:]:
            answer_with_seconds(Path(sys.argv[1]), tuple(map(int, sys.argv[2:])))
        else:
            alone()
    except InvalidData as error:
        sys.exit(f"not measured: {error}")
