import pytest

from iap.evaluation.evaluate import policy_job
from iap.zoo.locate import locate_policy


def test_a_policy_may_act_in_its_environment_with_other_options():
    policy, path = locate_policy("zoo:obstacle-course", env_options={"walls": 2})
    assert path.endswith("obstacle-course.policy")
    assert dict(policy_job(policy).env.kwargs) == {"residuals": False, "walls": 2}


def test_an_option_that_its_environment_does_not_have_is_named():
    policy, _ = locate_policy("zoo:obstacle-course", env_options={"wals": 2})
    with pytest.raises(TypeError, match="has no option wals"):
        policy_job(policy).env.make()
