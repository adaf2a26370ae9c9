"""What describes a dataset and what a run gives, as pydantic models: `.model_dump()` makes dictionaries of them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

from almanaq_bench.retrievers.paper_retrievers import RetrievalResultDataModel

__all__ = [
    "DatasetConfigDataModel",
    "DownstreamGeneratedResultDataModel",
    "DownstreamTaskPerformanceDataModel",
    "EmbeddingStatisticsDataModel",
    "GenericDatasetConfigDataModel",
    "HFDatasetConfigDataModel",
    "NeedleInHaystackDatasetConfigDataModel",
    "RetrievalPerformanceDataModel",
    "RetrievalResultDataModel",
    "TaskResultsDataModel",
    "Text2SQLDatasetConfigDataModel",
]

Split = Literal["test", "train", "validation"]


class DatasetConfigDataModel(BaseModel):
    """Which dataset, and which of its splits; `query_type` is what is asked in it."""

    dataset_name: str
    split: Split = "test"
    data_directory: str | None = None
    query_type: str | None = None
    aux: dict[str, Any] | None = None


class GenericDatasetConfigDataModel(DatasetConfigDataModel):
    """A dataset in a folder of one's own, with `corpus/` and `queries/` of Parquet files, or a card's file."""

    dataset_path: str
    datafile_ext: str | None = None


class HFDatasetConfigDataModel(DatasetConfigDataModel):
    """A dataset of the Hugging Face hub, by its two repositories; it must have been fetched into the data folder."""

    hf_corpus_dataset_path: str
    hf_queries_dataset_path: str


class NeedleInHaystackDatasetConfigDataModel(HFDatasetConfigDataModel):
    """Tables that nobody asks about, added to the others' as distractors."""

    query_type: str | None = "Needle in Haystack"
    hf_queries_dataset_path: str = ""


class Text2SQLDatasetConfigDataModel(HFDatasetConfigDataModel):
    """A dataset whose answers are SQL queries."""

    query_type: str | None = "Text to SQL"


class Subscripted(BaseModel):
    """A model that is also read as a dictionary: releases of the published package gave one or the other."""

    def __getitem__(self, name: str) -> Any:
        """Return a field by its name."""
        return self.model_dump()[name]

    def keys(self) -> list[str]:
        """Return the names of the fields."""
        return list(type(self).model_fields)


class RetrievalPerformanceDataModel(Subscripted):
    """How well tables were found among the first `k`. `accuracy` is what the paper's tables print as recall."""

    k: int = 5
    accuracy: float
    precision: float | None = None
    recall: float | None = None
    capped_recall: float | None = None
    mrr: float | None = None
    ndcg: float | None = None
    database_recall: float | None = None
    retrieval_time: float
    avg_retrieval_time: float
    retrieval_duration_process: float
    avg_retrieval_duration_process: float
    retrieval_duration_wall_clock: float
    avg_retrieval_duration_wall_clock: float


class DownstreamTaskPerformanceDataModel(Subscripted):
    """How well was replied: measures by name; None where nothing replies."""

    task_name: str | None = None
    scores: dict[str, Any] | None = None


class DownstreamGeneratedResultDataModel(BaseModel):
    """What was replied to one question."""

    dataset_name: str
    query_id: int | str
    generated_results: Any


class EmbeddingStatisticsDataModel(Subscripted):
    """How long the tables took to be taken in."""

    embedding_creation_duration: float
    avg_embedding_creation_duration: float
    embedding_creation_duration_process: float
    avg_embedding_creation_duration_process: float
    embedding_creation_duration_wall_clock: float
    avg_embedding_creation_duration_wall_clock: float
    embedding_size: float
    avg_embedding_size: float


class TaskResultsDataModel(Subscripted):
    """A task's results on one dataset."""

    retrieval_performance: RetrievalPerformanceDataModel
    downstream_task_performance: DownstreamTaskPerformanceDataModel = Field(
        default_factory=DownstreamTaskPerformanceDataModel
    )
    embedding_statistics: EmbeddingStatisticsDataModel | None = None
