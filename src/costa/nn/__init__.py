"""Encoders, heads and losses: small modules with their formula in the docstring, independent of any dataset."""

from costa.nn.adjacency import Adjacency
from costa.nn.contrast import both_views_loss, cross_view_loss, self_contrast_loss
from costa.nn.encoders import GCN
from costa.nn.heads import ProjectionHead
from costa.nn.hops import Hops
from costa.nn.losses import (
    barlow_twins_loss,
    bootstrap_loss,
    cca_loss,
    discrimination_loss,
    kl_to_standard_normal,
)
from costa.nn.preparation import Preparation
from costa.nn.reduction import FeatureReduction
from costa.nn.scaling import FeatureScaling, choose_scaling
from costa.nn.sparse import Features, SparseMatrix, sparse_if_faster

__all__ = [
    "GCN",
    "Adjacency",
    "FeatureReduction",
    "FeatureScaling",
    "Features",
    "Hops",
    "Preparation",
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
