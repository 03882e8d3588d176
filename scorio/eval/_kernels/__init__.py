"""The metrics as functions of counts, over any number of matrices at once.

`scorio.rank` and `scorio.study` build on these; the public functions of `scorio.eval` check their input
and call them with one matrix. Nothing is validated here.

Conventions
-----------
trials : Counted
    Of int arrays of shape (..., M): correct trials and trials of each question (or one int), and the weights.
prior : (float, float)
    Parameters of the Beta prior of a question's success probability.
counts : int array, shape (..., M, C + 1)
    Trials of each question in each category.
w : float array, shape (C + 1,)
    Reward of each category.
question_weights : float array that broadcasts to (..., M), or None
    Non-negative weights summing to 1; None weighs all questions by ``1 / M``.

Every kernel returns arrays of shape ``(...)``, or NumPy scalars for one matrix: a score, or a pair
``(mu, sigma)`` for `bayes`, `avg` and the kernels named ``*_posterior``.

With equal question weights a result depends on the multiset of the questions' counts only: the order of
questions, trials and matrices does not change its last digit, so equal evidence gives exact ties.
"""
