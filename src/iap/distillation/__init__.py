"""Pretraining of a policy from privileged information: what the simulator knows, or the actions of a teacher."""

from iap.distillation.config import Distillation, ESPretraining
from iap.distillation.dagger.config import DAgger
from iap.distillation.pretrained import Pretrained, Report
from iap.envs.core import EnvConfig
from iap.policies import PolicyConfig

__all__ = ["DAgger", "Distillation", "ESPretraining", "Pretrained", "pretrain"]


def pretrain(
    pretraining: ESPretraining | Distillation,
    env: EnvConfig,
    policy: PolicyConfig,
    seed: int,
    report: Report = lambda _what, _share: None,
) -> Pretrained:
    """Pretrain a random policy.

    Args:
        pretraining: how.
        env: the environment, which has to offer privileged information (see `iap.envs.protocols`).
        policy: the policy's config.
        seed: of everything random.
        report: called with what is being done and which share of it is done.
    """
    if isinstance(pretraining, ESPretraining):
        from iap.distillation.es_pretraining import pretrain_by_es

        return pretrain_by_es(pretraining, env, policy, seed, report)
    from iap.distillation.encoder_regression import distil

    return distil(pretraining, env, policy, seed, report)
