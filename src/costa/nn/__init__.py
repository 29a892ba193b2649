"""Encoders, heads and losses: small modules with their formula in the docstring. They know no dataset."""

from costa.nn.adjacency import Adjacency
from costa.nn.encoders import GCN, MLP
from costa.nn.heads import ProjectionHead
from costa.nn.losses import (
    barlow_twins_loss,
    bootstrap_loss,
    both_views_loss,
    cca_loss,
    cross_view_loss,
    discrimination_loss,
    kl_to_standard_normal,
    self_contrast_loss,
)
from costa.nn.scaling import FeatureScaling, choose_scaling
from costa.nn.sparse import SparseMatrix, sparse_if_faster

__all__ = [
    "GCN",
    "MLP",
    "Adjacency",
    "FeatureScaling",
    "ProjectionHead",
    "SparseMatrix",
    "barlow_twins_loss",
    "bootstrap_loss",
    "both_views_loss",
    "cca_loss",
    "choose_scaling",
    "cross_view_loss",
    "discrimination_loss",
    "kl_to_standard_normal",
    "self_contrast_loss",
    "sparse_if_faster",
]
