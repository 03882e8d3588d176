// The rule `anytime` for two models with right-or-wrong answers to the same questions, along one order of questions.
// The formulas and their sources are in scorio/sequential; a test runs both on the same answers.

const MIXTURE = [[0.75, 0.05], [0.25, 0.2]];
const POOLED = 1e4, TRUST = 8, FLOOR = 1e-15, TIE_FACTOR = 1.05, ENOUGH_NOISE = 2, ON_ANSWERS = 0.2;

/** Positions in the order of questions: once each with some early repeats, then again and again. */
export function* positions(questions) {
  const start = Math.max(16, 16 * Math.ceil(questions / 128));
  let repeats = 0;
  for (let q = 0; q < questions; q++) {
    if (q >= start && (q - start) % 16 === 0 && repeats < 128) yield repeats++;
    yield q;
  }
  for (let pass = 1; ; pass++) for (let q = pass === 1 ? repeats : 0; q < questions; q++) yield q;
}

/** What a model's answers say of its score, and of the noise of that score. */
class Model {
  constructor(questions) {
    this.n = new Float64Array(questions);
    this.right = new Float64Array(questions);
    this.prior = { strength: POOLED, mean: 0.5 };
    this.steps = this.repeated = this.fitted = 0;
  }

  mean(q) {
    return this.n[q] ? this.right[q] / this.n[q] : 0;
  }

  add(q, answer) {
    this.n[q] += 1;
    this.right[q] += answer;
    this.repeated += this.n[q] === 2;
    this.steps += 1;
    const doubled = this.repeated >= 2 * Math.max(this.fitted, 1);
    const power = this.repeated === 0 && (this.steps & (this.steps - 1)) === 0;
    if (doubled) this.fitted = this.repeated;
    if (doubled || power || this.steps % this.n.length === 0) this.fit();
  }

  /** Fit how much the questions differ. */
  fit() {
    let asked = 0, trials = 0, sum = 0, twice = 0, inside = 0;
    this.n.forEach((n, q) => {
      if (!n) return;
      const y = this.mean(q);
      asked += 1; trials += n; sum += y;
      if (n >= 2) { twice += 1; inside += (this.right[q] - n * y * y) / (n - 1); }
    });
    const y = sum / asked, weight = asked / trials;
    const total = (y - y * y) * asked / Math.max(asked - 1, 1);
    const within = (inside + total) / (twice + 1);
    const visible = twice > 0 && total > within;
    this.prior = {
      strength: visible ? Math.min(Math.max(within / (total - within), 0.05), POOLED) : POOLED,
      mean: (asked * y + 0.5 * weight) / (asked + weight),
    };
  }

  noise() {
    const { strength, mean } = this.prior;
    let w = 0, u = 0, g = 0, r = 0, seen = 0, score = 0;
    this.n.forEach((n, q) => {
      if (!n) return;
      const total = n + strength, a = (strength * mean + this.right[q]) / total;
      const v = (a - a * a) * total / (total + 1);
      const b = (1 + this.right[q]) / (n + 2);
      seen += 1; score += this.mean(q); w += v / n; g += n * v; r += n - 1;
      u += ((n + 2) / n) ** 2 * (b - b * b) / (n + 3);
    });
    score /= seen;
    return { w: w / seen, u: u / seen, g, r, score, trials: seen + r };
  }
}

const noiseOf = (a, b) => ({ w: a.w + b.w, u: a.u + b.u, g: Math.min(a.g, b.g), r: Math.min(a.r, b.r) });

function variance(square, kappa, count, questions, { w, u, g, r }) {
  const between = (square + kappa) / (count * count);
  const trust = 1 - (TRUST / (TRUST + r)) ** 2;
  const trials = w / count + kappa / (count + r) ** 2;
  const within = g >= ENOUGH_NOISE ? (1 - trust) * between + trust * trials : Math.min(between, Math.max(w, u) / count);
  const fraction = count / questions;
  return Math.max((1 - fraction) * between + fraction * within, FLOOR);
}

const logCosh = (x) => x + Math.log1p(Math.exp(-2 * x)) - Math.LN2;
const logSum = (a, b) => Math.max(a, b) + Math.log1p(Math.exp(-Math.abs(a - b)));

/** Logarithm of the e-value that two models differ. */
export function logEvidence(difference, v, margin) {
  const [first, second] = MIXTURE.map(([weight, tau]) => {
    const x = tau * tau / v;
    return Math.log(weight) + 0.5 * difference ** 2 / v * (x / (1 + x)) - 0.5 * Math.log1p(x);
  });
  const mixture = logSum(first, second);
  if (!margin) return mixture;
  return logSum(mixture, logCosh(margin * Math.abs(difference) / v) - 0.5 * margin ** 2 / v) - Math.LN2;
}

/** Half-width of the interval that holds at every look. */
export function radius(v, alpha, margin) {
  const target = Math.log(1 / alpha);
  let low = 0, high = Math.sqrt(v);
  while (logEvidence(high, v, margin) < target) high *= 2;
  for (let step = 0; step < 60; step++) {
    const middle = 0.5 * (low + high);
    if (logEvidence(middle, v, margin) < target) low = middle; else high = middle;
  }
  return high;
}

/** The mean square of a difference of one answer each, as it is likely to be if the truth were the margin. */
function squareAtMargin(d, q, margin) {
  const half = 0.5 * (q + d * margin), root = half ** 2 - margin * (d - margin * (1 - q));
  return Math.max(half + Math.sqrt(Math.max(root, 0)), margin);
}

/** The variance with which a tie is called: the one that the difference would have if the truth were the margin. */
function tieVariance(difference, v, guarded, margin, a, b) {
  const n = Math.max(Math.min(a.trials, b.trials), 1), d = Math.abs(difference);
  const most = d ** 2 + a.score * (1 - a.score) + b.score * (1 - b.score), q = Math.min(v * n, most);
  const unseen = margin ** 2 / (-2 * n * Math.log1p(-Math.min(margin, 0.999)));
  return TIE_FACTOR * Math.max(q / n > FLOOR ? squareAtMargin(d, q, margin) / n : unseen, guarded);
}

/** Two models, compared after every answer of each. */
export class Comparison {
  constructor({ questions, alpha = 0.05, margin = null }) {
    Object.assign(this, { questions, alpha, margin, sum: 0, square: 0, count: 0, steps: 0 });
    Object.assign(this, { ahead: 0, behind: 0, won: 0 });
    this.verdict = this.at = null;
    this.first = new Model(questions);
    this.second = new Model(questions);
  }

  add(q, a, b) {
    const fresh = this.first.n[q] === 0, before = [this.first.mean(q), this.second.mean(q)];
    this.first.add(q, a);
    this.second.add(q, b);
    this.bet(a - b);
    const after = [this.first.mean(q), this.second.mean(q)];
    return this.step(fresh, before[0] - before[1], after[0] - after[1]);
  }

  /** Bets on the answers in which the models differ: each chance of such an answer weighs as in Beta(½, ½). */
  bet(d) {
    if (!d) return;
    const before = d > 0 ? this.ahead++ : this.behind++;
    this.won += Math.log(2 * (before + 0.5) / (this.ahead + this.behind));
  }

  step(fresh, before, after) {
    this.sum += after - before;
    this.square += after * after - before * before;
    this.count += fresh;
    this.steps += 1;
    return this.look();
  }

  look() {
    const { questions, count, alpha, margin } = this, target = Math.log(1 / alpha);
    const a = this.first.noise(), b = this.second.noise(), square = Math.max(this.square, 0);
    const difference = this.sum / count, single = a.r === 0 && b.r === 0;
    const noise = noiseOf(a, b), guarded = variance(square, target, count, questions, noise);
    const v = single ? variance(square, 0, count, questions, noise) : guarded;
    const now = logEvidence(difference, v, margin) + Math.log(1 - ON_ANSWERS), enough = this.steps >= 10;
    const side = Math.abs(difference) > 1e-9 ? Math.sign(difference) : 0;
    const agrees = side === Math.sign(this.ahead - this.behind);
    const logE = agrees ? logSum(now, this.won + Math.log(ON_ANSWERS)) : now;
    const won = enough && logE >= target;
    const near = margin ? tieVariance(difference, v, guarded, margin, a, b) : null;
    const tied = enough && margin && 0.5 * margin ** 2 / near - logCosh(margin * Math.abs(difference) / near) >= target;
    if (!this.verdict && (won || tied)) {
      this.verdict = won ? (difference > 0 ? "first" : "second") : "tie";
      this.at = this.steps;
    }
    // The paper's z at complete passes: what a person would look at.
    return { difference, guarded, logE, z: Math.abs(difference) / Math.sqrt((a.u + b.u) / count), enough };
  }
}
