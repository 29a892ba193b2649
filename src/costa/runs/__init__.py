"""The RUN folder: what ``costa train`` writes, and what the other commands read.

``files`` reads and writes its files, ``folder`` checks that a run may use it, ``execution`` trains one seed and
``several`` several, ``evaluation`` and ``metrics`` score the vectors, ``models`` and ``saving`` store the model,
``vectors`` stores the vectors, and ``provenance`` says where a number comes from. What a run will take is told by
``estimate``, from the formulas of ``costs`` and the measurements of ``pace``.
"""

from costa.runs.columns import load_columns
from costa.runs.evaluation import REPEATS, add_probe, probe_graph, probe_links
from costa.runs.execution import assist, execute
from costa.runs.files import CONFIG, MODEL, read_config
from costa.runs.folder import claim, claim_folders, load_run_edges, load_run_graph, run_folders
from costa.runs.jobs import DEFAULT_PROTOCOLS, Job
from costa.runs.metrics import Metrics, pair_scores, read_metrics
from costa.runs.models import embed, embed_rows, load_model, read_settings, rebuild
from costa.runs.provenance import commit, reset_peak_memory, versions
from costa.runs.vectors import check_vector_path, column_names, load_embeddings, write_parts, write_vectors
