"""Convex model-predictive control: contact forces that move the body along a reference trajectory.

The body is a single rigid body with 13 state variables: angles (roll, pitch, yaw), position, angular velocity, velocity
and gravity. Yaw is zero, since all quantities are in the heading frame. The forces minimise

    Σ_k ‖x_k − x*_k‖²_W + α Σ ‖f‖²

over the horizon, with forces only of feet in contact, inside their friction pyramids. The matrix exponential of this
system has only three non-zero terms, so the quadratic program has a closed form (`mpc_kernels`).
"""

from dataclasses import dataclass

import numpy as np
import quadprog
from jaxtyping import Bool, Float

from iap.locomotion import mpc_kernels

GRAVITY = 9.8


class QPError(RuntimeError):
    """The quadratic program has no solution, or its coefficients are not finite."""


@dataclass(frozen=True)
class MPCConfig:
    """The model of the body, and the cost.

    Attributes:
        mass_kg: of the robot.
        inertia: moments of inertia about the centre of mass, along the axes of the body.
        horizon: number of steps.
        step_s: length of a step.
        weights: of errors in angles, position, angular velocity and velocity.
        force_weight: α, of squared forces.
        friction: coefficient, lower than that of the ground for safety.
        least_share: smallest normal force of a foot in contact, as a fraction of the weight.
        most_share: largest normal force, as a fraction of the weight.
    """

    mass_kg: float
    inertia: tuple[float, float, float]
    horizon: int = 10
    step_s: float = 0.025
    weights: tuple[float, ...] = (5.0, 5.0, 0.2, 0.0, 0.0, 10.0, 0.5, 0.5, 0.2, 0.2, 0.2, 0.1)
    force_weight: float = 1e-6
    friction: float = 0.45
    least_share: float = 0.1
    most_share: float = 10.0


class ConvexMPC:
    """Solves for the contact forces of one robot.

    Attributes:
        solved: number of programs that were solved.
        constrained: number of those whose constraints were active.
    """

    def __init__(self, config: MPCConfig) -> None:
        """Precompute everything that does not depend on the state."""
        self.config = config
        self.solved = 0
        self.constrained = 0
        self._sums = mpc_kernels.horizon_sums(config.horizon, config.step_s)
        constants = (config.mass_kg, config.force_weight, config.step_s, GRAVITY)
        self._body = (np.array(config.inertia), np.array(config.weights), constants)
        weight_n = config.mass_kg * GRAVITY
        self._limits = (config.friction, config.least_share * weight_n, config.most_share * weight_n)

    def forces(
        self,
        state: Float[np.ndarray, " 12"],
        reference: Float[np.ndarray, "N 12"],
        contacts: Bool[np.ndarray, "N 4"],
        feet: Float[np.ndarray, "N 4 3"],
    ) -> Float[np.ndarray, "N 4 3"]:
        """The force of the ground on each foot in each step; zero without contact.

        Args:
            state: angles, position, angular velocity and velocity of the body, with yaw zero.
            reference: desired states at the end of each step.
            contacts: which feet are in contact in each step.
            feet: positions of the feet in each step, relative to the centre of mass.

        Raises:
            QPError: if there is no solution.
        """
        forces, outcome, hessian, gradient = mpc_kernels.solve(
            state, reference, contacts, feet, self._body, self._sums, self._limits
        )
        if outcome == mpc_kernels.NO_CONTACTS:
            return forces
        self.solved += 1
        if outcome == mpc_kernels.NOT_CONVEX:
            raise QPError("the quadratic program is not convex: its coefficients are not finite or too large")
        if outcome == mpc_kernels.NOT_ALLOWED:
            self.constrained += 1
            best = self._constrained(hessian, gradient)
            if not np.isfinite(best).all():
                raise QPError("the quadratic program has no solution: its coefficients are not finite")
            forces[contacts] = best.reshape(-1, 3)
        return forces

    def program(
        self,
        state: Float[np.ndarray, " 12"],
        reference: Float[np.ndarray, "N 12"],
        contacts: Bool[np.ndarray, "N 4"],
        feet: Float[np.ndarray, "N 4 3"],
    ) -> tuple[Float[np.ndarray, "n n"], Float[np.ndarray, " n"]]:
        """The Hessian and the gradient over the forces of feet in contact, ordered by step and then by leg."""
        return mpc_kernels.build(state, reference, contacts, feet, self._body, self._sums)

    def _constrained(self, hessian: Float[np.ndarray, "n n"], gradient: Float[np.ndarray, " n"]) -> np.ndarray:
        columns, bounds = mpc_kernels.constraints(len(gradient) // 3, *self._limits)
        try:
            return quadprog.solve_qp(hessian, -gradient, columns, bounds)[0]
        except ValueError as error:
            raise QPError(f"the quadratic program has no solution: {error}") from error
