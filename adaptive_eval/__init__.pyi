from adaptive_eval.run.evaluate import Evaluation as Evaluation
from adaptive_eval.run.evaluate import assert_at_least as assert_at_least
from adaptive_eval.run.evaluate import assert_not_worse as assert_not_worse
from adaptive_eval.run.evaluate import evaluate as evaluate
from adaptive_eval.run.evaluate import evaluate_async as evaluate_async
from adaptive_eval.text.decision_words import describe as describe
from adaptive_eval.text.decision_words import explain as explain

__version__: str
