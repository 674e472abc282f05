from dataclasses import replace

from config_cases import configs
from hypothesis import given

from iap.policies import (
    CNN,
    LSTM,
    AttentionAgent,
    Blind,
    Hierarchy,
    PolicyConfig,
    Rank,
    blind_baseline,
    cnn_baseline,
    count_params,
    describe,
)

OBSTACLE_COURSE = PolicyConfig(
    (32, 32, 3), sensors=30, actions=20, encoder=Rank(patch=1, stride=1, d=4, top_k=10), hierarchy=Hierarchy()
)


@given(configs())
def test_the_parts_add_up_to_theta(config):
    described = describe(config)
    assert described.total == count_params(config) == sum(row.parameters for row in described.rows)
    assert sum(described.parts.values()) == described.total
    assert {row.part for row in described.rows} == set(described.parts)


def test_attention_agent_has_the_published_parameter_counts():
    described = describe(PolicyConfig((96, 96, 3), 0, 3, encoder=AttentionAgent(), controller=LSTM(16)))
    assert described.parts == {"encoder": 1184, "controller": 2432 + 51}
    assert described.rows[1] == ("encoder", "query.weight", (4, 147), 588)


def test_the_cnn_baseline_is_at_least_8_4_times_as_large_in_its_encoder_and_in_total():
    baseline = describe(cnn_baseline(OBSTACLE_COURSE))
    described = describe(OBSTACLE_COURSE)
    assert baseline.parts["encoder"] >= 8.4 * described.parts["encoder"]
    assert baseline.total >= 8.4 * described.total


@given(configs())
def test_baselines_are_the_same_policy_with_another_encoder(config):
    assert cnn_baseline(config) == replace(config, encoder=CNN())
    assert blind_baseline(config) == replace(config, encoder=Blind())
