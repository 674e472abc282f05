from dataclasses import replace

from hypothesis import given
from policy_cases import specs

from iap.policies import (
    CNN,
    LSTM,
    AttentionAgent,
    Blind,
    Hierarchy,
    PolicyConfig,
    Rank,
    blind_baseline,
    blocks,
    cnn_baseline,
    describe,
)

COURSE = PolicyConfig((32, 32, 3), sensors=30, actions=20, encoder=Rank(patch=1, stride=1, d=4, top_k=10), hierarchy=Hierarchy())


@given(specs())
def test_the_parts_add_up_to_theta(spec):
    described = describe(spec)
    assert described.total == blocks(spec)[-1].stop == sum(row.parameters for row in described.rows)
    assert sum(described.parts.values()) == described.total
    assert {row.part for row in described.rows} == set(described.parts)


def test_attention_agent_is_described_as_published():
    spec = PolicyConfig((96, 96, 3), 0, 3, encoder=AttentionAgent(), controller=LSTM(16))
    described = describe(spec)
    assert described.parts == {"encoder": 1184, "controller": 2432 + 51}
    assert described.rows[1] == ("encoder", "query.weight", (4, 147), 588)


def test_the_vision_of_the_cnn_baseline_is_more_than_8_4_times_as_large():
    baseline = cnn_baseline(COURSE)
    assert describe(baseline).parts["encoder"] >= 8.4 * describe(COURSE).parts["encoder"]
    assert describe(baseline).total >= 8.4 * describe(COURSE).total


@given(specs())
def test_baselines_are_the_same_policy_with_other_eyes(spec):
    for baseline, encoder in ((cnn_baseline(spec), CNN()), (blind_baseline(spec), Blind())):
        assert baseline == replace(spec, encoder=encoder, keys_every=1)
