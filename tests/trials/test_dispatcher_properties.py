"""The dispatcher under any sequence of events that workers, nodes and clocks can produce."""

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lidp.designs.trial_record import TrialRecord
from lidp.trials.dispatcher import Dispatcher, DispatchPolicy

DIED = "the worker process died"
TRIALS = 25


def record(index):
    return TrialRecord(index, {"scores": np.zeros(1)})


class Events(RuleBasedStateMachine):
    """Sends events to a dispatcher, and notes for each trial how it ended and how often it ran to a death of its own.

    Deferred batches are settled as the caller of the dispatcher does it: by a lost node or by a dead worker.
    """

    @initialize(
        retry=st.booleans(),
        limit=st.sampled_from([None, 3.0]),
        each=st.booleans(),
        together=st.booleans(),
        capacity=st.integers(1, 4),
        warm=st.booleans(),
    )
    def set_up(self, retry, limit, each, together, capacity, warm):
        self.policy = DispatchPolicy(
            retry=retry,
            time_limit_seconds=limit,
            batch_trials=6,
            batch_seconds=2.0,
            keeps_each_record=each,
            may_run_together=together,
            node_check_seconds=2.0,
            most_node_losses=10**6,
            stall_seconds=5.0,
        )
        self.now = 0.0
        self.dispatch = Dispatcher(range(TRIALS), self.policy, capacity=capacity, now=0.0)
        self.outcomes = {}
        self.charged = dict.fromkeys(range(TRIALS), 0)
        self.suspects = set()
        if warm:  # the duration of a trial is known, so that batches have several trials
            self.hand_out(starts=True, capacity=capacity)
            self.now = 0.25
            for one in self.dispatch.take_records(self.dispatch.running[0], [record(0)], now=self.now):
                self.finish(one.index, "returned", one.attempts)

    def finish(self, index, how, attempts):
        assert index not in self.outcomes, f"trial {index} ended twice"
        assert attempts == self.charged[index] + (how != "died")
        self.outcomes[index] = how

    def pick(self, data, batches):
        return data.draw(st.sampled_from(list(batches)))

    def handle_death(self, batch, died_at):
        """Report the death of a worker, and check which trial it is charged to."""
        running = list(batch.pending)
        lost = self.dispatch.handle_dead_worker(batch, DIED, now=self.now)
        if batch.together and len(running) > 1:
            assert lost == []
            self.suspects.update(running)
            return
        victim = running[0]
        self.charged[victim] += 1
        failed = not self.policy.retry or self.charged[victim] == 2
        assert [trial.index for trial in lost] == ([victim] if failed else [])
        for trial in lost:
            assert trial.reason == DIED
            assert trial.seconds == (0 if batch.running_since is None else died_at - batch.running_since)
            self.finish(victim, "died", trial.attempts)

    @rule(quarters=st.sampled_from([1, 2, 8, 16, 24]), acts=st.booleans(), gone=st.booleans())
    def wait(self, quarters, acts, gone):
        """Let time pass, in quarters of a second, whose sums are exact; do what is due then, or do it later."""
        self.now += quarters / 4
        if acts:
            self.give_up_overdue()
            self.check_nodes(gone)

    @rule(starts=st.booleans(), capacity=st.integers(1, 4))
    def hand_out(self, starts, capacity):
        self.dispatch.capacity = capacity
        queued, running = list(self.dispatch.queued), len(self.dispatch.running)
        batch = self.dispatch.next_batch()
        if batch is None:
            assert not queued or running >= self.dispatch.capacity
            return
        assert running < self.dispatch.capacity
        assert batch.pending == queued[: len(batch.pending)]
        if len(batch.pending) > 1:
            assert len(batch.pending) <= self.policy.batch_trials
            assert batch.together or self.policy.keeps_each_record
            alone = [index for index in batch.pending if self.charged[index] or index in self.suspects]
            assert not alone  # a second death is then charged to no other trial
        if batch.together:
            assert self.policy.retry
            assert self.policy.time_limit_seconds is None
        if starts:
            self.dispatch.note_node(batch, "a")
            self.dispatch.note_start(batch, now=self.now)

    @precondition(lambda self: self.dispatch.running)
    @rule(data=st.data())
    def start(self, data):
        batch = self.pick(data, self.dispatch.running)
        if batch.running_since is None:
            self.dispatch.note_node(batch, "a")
            self.dispatch.note_start(batch, now=self.now)
            self.dispatch.note_message(now=self.now)

    @precondition(lambda self: self.dispatch.running)
    @rule(data=st.data())
    def return_records(self, data):
        """One record or all of them, as the worker returns them; with records of other trials between, sent by a forked child."""
        batch = self.pick(data, self.dispatch.running)
        single = self.policy.keeps_each_record and not batch.together
        sent = batch.pending[:1] if single else list(batch.pending)
        others = [index for index in range(TRIALS) if index not in batch.pending]
        noise = data.draw(st.lists(st.sampled_from([*others, *sent, TRIALS + 1]), max_size=3))
        accepted = self.dispatch.take_records(batch, [record(index) for index in (*sent, *noise)], now=self.now)
        assert [one.index for one in accepted] == sent
        for one in accepted:
            self.finish(one.index, "returned", one.attempts)

    @precondition(lambda self: self.dispatch.running)
    @rule(data=st.data())
    def kill_worker(self, data):
        self.handle_death(self.pick(data, self.dispatch.running), self.now)

    @precondition(lambda self: self.dispatch.running)
    @rule(data=st.data(), idle=st.booleans())
    def lose_node_or_idle_worker(self, data, idle):
        batch = self.pick(data, self.dispatch.running)
        if idle:
            self.dispatch.return_undelivered(batch)
        else:
            self.dispatch.handle_lost_node(batch)

    @precondition(lambda self: self.dispatch.running)
    @rule(data=st.data())
    def defer(self, data):
        self.dispatch.defer_until_node_checked(self.pick(data, self.dispatch.running), now=self.now)

    def check_nodes(self, gone):
        for batch in self.dispatch.due_node_checks(now=self.now):
            assert self.now - batch.died_at >= self.policy.node_check_seconds
            if gone:
                self.dispatch.handle_lost_node(batch)
            else:
                self.handle_death(batch, batch.died_at)

    def give_up_overdue(self):
        for batch in self.dispatch.overdue(now=self.now):
            assert not batch.together
            assert self.now - batch.running_since > self.policy.time_limit_seconds
            late = batch.pending[0]
            lost = self.dispatch.give_up(batch, now=self.now)
            assert lost.index == late
            self.finish(late, "late", lost.attempts)

    @rule(slots=st.integers(0, 4))
    def resubmit_stalled(self, slots):
        for batch in self.dispatch.take_back_stalled(slots=slots, now=self.now):
            assert batch.running_since is None

    @invariant()
    def every_trial_is_in_exactly_one_place(self):
        if not hasattr(self, "dispatch"):
            return
        batches = [*self.dispatch.running, *self.dispatch.deferred]
        assert all(batch.pending for batch in batches)
        somewhere = [*self.dispatch.queued, *(index for batch in batches for index in batch.pending), *self.outcomes]
        assert sorted(somewhere) == list(range(TRIALS))
        assert self.dispatch.done == (len(self.outcomes) == TRIALS)

    @invariant()
    def nothing_is_due_before_the_next_deadline(self):
        if not hasattr(self, "dispatch"):
            return
        due = [*self.dispatch.overdue(now=self.now), *self.dispatch.due_node_checks(now=self.now)]
        assert not due or self.dispatch.next_deadline() <= self.now

    def teardown(self):
        """Whatever has happened, workers that return their records finish every trial."""
        if not hasattr(self, "dispatch"):
            return
        self.dispatch.capacity = 4
        for _ in range(4 * TRIALS):
            self.now += self.policy.node_check_seconds
            self.check_nodes(gone=False)
            while self.dispatch.next_batch() is not None:
                pass
            for batch in self.dispatch.running:
                accepted = self.dispatch.take_records(batch, [record(index) for index in batch.pending], now=self.now)
                for one in accepted:
                    self.finish(one.index, "returned", one.attempts)
        assert self.dispatch.done
        assert sorted(self.outcomes) == list(range(TRIALS))
        assert max(self.charged.values()) <= 1 + self.policy.retry


TestEvents = Events.TestCase
TestEvents.settings = settings(max_examples=400, stateful_step_count=50, deadline=None)
