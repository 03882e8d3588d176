"""Ten wrong calls of every module of scorio, which mypy --strict and pyright refuse: none is ever run."""

import numpy as np

from scorio import categorical, rank, sequential, sinf, study, utils
from scorio import eval as metrics

R = np.zeros((3, 20, 8), dtype=np.int64)


def of_eval() -> None:
    metrics.pass_at_k(R[0], "2")  # type: ignore
    metrics.pass_at_k(R[0])  # type: ignore
    metrics.pass_at_k_ci(R[0], 2, confidenc=0.9)  # type: ignore
    metrics.avg(R[0], weights=[0, 1])  # type: ignore
    metrics.bayes(R[0], prior=3)  # type: ignore
    metrics.bayes_ci(R[0], confidence="high")  # type: ignore
    metrics.g_pass_at_k_tau(R[0], 2, tau="half")  # type: ignore
    print(metrics.bayes(R[0]).lo)  # type: ignore
    metrics.unknown_metric(R[0])  # type: ignore
    metrics.maj_at_k(R[0], 2, 3, 4)  # type: ignore


def of_rank() -> None:
    rank.avg(R, methd="dense")  # type: ignore
    rank.avg(R, method="olympic")  # type: ignore
    rank.pass_at_k(R)  # type: ignore
    rank.pass_at_k(R, "2")  # type: ignore
    rank.pass_at_k(R, 2, tau=0.5)  # type: ignore
    rank.bayes(R, quantile="low")  # type: ignore
    rank.bradley_terry_map(R, prior="normal")  # type: ignore
    rank.elo(R, tie_handling="half")  # type: ignore
    print(rank.avg(R).scores)  # type: ignore
    rank.minimax(R)  # type: ignore
    rank.rasch_3pl(R, fix_guessing="a quarter")  # type: ignore
    rank.rasch_mml_credible(R, quantil=0.1)  # type: ignore
    print(rank.rasch(R, return_item_params=True).names)  # type: ignore
    rank.kemeny_young(R, time_limit="1 s")  # type: ignore


def of_sequential() -> None:
    sequential.compare(R[0], R[1], equivalance=0.1)  # type: ignore
    sequential.compare(R[0], R[1], 0.1)  # type: ignore
    sequential.compare(R[0], R[1], target="sample")  # type: ignore
    print(sequential.compare(R[0], R[1]).p)  # type: ignore
    sequential.compare(R[0], R[1], range=1.0)  # type: ignore
    sequential.board(R, names="abc", family=3)  # type: ignore
    sequential.score(R[0], against="half")  # type: ignore
    sequential.sample_size(0.1)  # type: ignore
    sequential.permutation_test(R[0], R[1], null="none")  # type: ignore
    sequential.Monitor(["a", "b"], 30).update("a", 0)  # type: ignore
    sequential.ScoreMonitor(against="half")  # type: ignore
    sequential.ScoreMonitor().update("right")  # type: ignore


def of_categorical() -> None:
    categorical.get_schema(3)  # type: ignore
    categorical.get_schema("Token", strict=True)  # type: ignore
    categorical.schema_names("all")  # type: ignore
    categorical.bits_per_token()  # type: ignore
    categorical.evaluate()  # type: ignore
    categorical.load_records("a.jsonl", workers="all")  # type: ignore
    categorical.evaluate_schema("columns", 3)  # type: ignore
    categorical.evaluate_all(3)  # type: ignore
    categorical.Thresholds.from_columns()  # type: ignore
    print(categorical.unknown_rubric)  # type: ignore


def of_sinf() -> None:
    sinf.ranking_confidence(0.5, 0.1, 0.4)  # type: ignore
    sinf.ranking_confidence("0.5", 0.1, 0.4, 0.1)  # type: ignore
    sinf.ci_from_mu_sigma(0.5, 0.1, level=0.9)  # type: ignore
    sinf.ci_from_mu_sigma(0.5, 0.1, clip=1.0)  # type: ignore
    sinf.should_stop("0.1", max_ci_width=0.1)  # type: ignore
    sinf.should_stop(0.1, width=0.1)  # type: ignore
    sinf.should_stop_top1([0.5], [0.1], method="overlap")  # type: ignore
    sinf.should_stop_top1([0.5])  # type: ignore
    sinf.suggest_next_allocation([0.5], [0.1], confidence="high")  # type: ignore
    sinf.stop_now(0.1)  # type: ignore


def of_utils() -> None:
    utils.compare_rankings([1, 2])  # type: ignore
    utils.compare_rankings([1, 2], [2, 1], "pearson")  # type: ignore
    utils.compare_rankings([1, 2], [2, 1])["tau"]  # type: ignore
    utils.rank_scores([1.0], tolerance=0.1)  # type: ignore
    utils.rank_scores([1.0], tol="small")  # type: ignore
    utils.rank_scores([1.0], ci_tie_method="overlap")  # type: ignore
    utils.lehmer_hash(3.5, 2)  # type: ignore
    utils.lehmer_unhash("5", 3)  # type: ignore
    utils.comb_unrank_lex(1, 2)  # type: ignore
    utils.unknown_helper()  # type: ignore


def of_study() -> None:
    study.biased_coins("half", 30, pases=2)  # type: ignore
    study.biased_coins([0.5], 30, sed=1)  # type: ignore
    study.convergence(3)  # type: ignore
    study.convergence()  # type: ignore
    study.Bootstrap()  # type: ignore
    study.Bootstrap(R, names=1.5, draws=3)  # type: ignore
    study.tau_curves("source")  # type: ignore
    study.pair_separation(3)  # type: ignore
    study.replicate_trials()  # type: ignore
    study.unknown_curve(R)  # type: ignore
