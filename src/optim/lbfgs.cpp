// LBFGS: the inverse Hessian told by the last steps, and a search along its direction.
#include <algorithm>
#include <cmath>

#include <rushlight/factories.h>
#include <rushlight/ops.h>
#include <rushlight/optim.h>

#include "optim/fields.h"

namespace rushlight::optim {

namespace {

template <class Options, class F>
void visit(Options& o, const F& f) {
  f("lr", o.lr());
  f("max_iter", o.max_iter());
  f("max_eval", o.max_eval());
  f("tolerance_grad", o.tolerance_grad());
  f("tolerance_change", o.tolerance_change());
  f("history_size", o.history_size());
}

double number(const Tensor& t) { return t.item<double>(); }
bool holds(const Tensor& t) { return t.item<bool>(); }

// A place on a line of search: how far, the loss, its gradient and its slope there.
struct Point {
  double t = 0;
  double loss = 0;
  Tensor grad;
  double slope = 0;
};

// Where the cubic with the losses and slopes of two points is least, kept within bounds. Its slope
// at p.t + u (q.t - p.t) is a parabola in u; where that has no rising root, the middle serves.
double lowest_between(Point p, Point q, double low, double high) {
  if (q.t < p.t) {
    std::swap(p, q);
  }
  const double width = q.t - p.t;
  if (width > 0) {
    const double e = p.slope + q.slope - 3 * (q.loss - p.loss) / width;
    const double square = e * e - p.slope * q.slope;
    const double divisor = square >= 0 ? p.slope + e - std::sqrt(square) : 0;
    if (divisor != 0) {
      return std::min(std::max(p.t + width * p.slope / divisor, low), high);
    }
  }
  return (low + high) / 2;
}

// Finds a point of a line that meets the strong Wolfe conditions: the loss has become lower by a
// part of what the slope at the start promises, the slope a part of that at the start, up or down.
class LineSearch {
 public:
  using Evaluate = std::function<Point(double)>;
  LineSearch(Evaluate evaluate, Point start, double largest, int64_t most)
      : evaluate_(std::move(evaluate)), start_(std::move(start)), largest_(largest), left_(most) {}

  // The point, from a first guess on; the best one seen where time is up.
  Point find(double t) {
    Point before = start_;
    Point point = evaluate_(t);
    const int64_t most = left_;
    for (int64_t i = 0; i < most; i++) {
      if (too_high(point) || (i > 1 && point.loss >= before.loss)) {
        return narrow(before, point);
      }
      if (is_flat(point)) {
        return point;
      }
      if (point.slope >= 0) {
        return narrow(before, point);
      }
      const double low = point.t + 0.01 * (point.t - before.t);
      const double next = lowest_between(before, point, low, 10 * point.t);
      before = point;
      point = evaluate_(next);
      left_--;
    }
    return narrow(start_, point);
  }

 private:
  static constexpr double kLower = 1e-4;
  static constexpr double kFlatter = 0.9;
  static constexpr double kClose = 1e-9;  // elements that differ by less are not worth a point

  bool too_high(const Point& p) const { return p.loss > start_.loss + kLower * p.t * start_.slope; }
  bool is_flat(const Point& p) const { return std::abs(p.slope) <= -kFlatter * start_.slope; }

  // Narrows an interval that holds such a point; `low` is the end with the lower loss.
  Point narrow(Point low, Point high) {
    if (high.loss < low.loss) {
      std::swap(low, high);
    }
    bool was_near = false;
    while (left_ > 0 && std::abs(high.t - low.t) * largest_ >= kClose) {
      const double left = std::min(low.t, high.t);
      const double right = std::max(low.t, high.t);
      double t = lowest_between(low, high, left, right);
      // The second time in a row that the cubic leads to an end, or at once where it is the end
      // itself: a tenth of the interval away from it.
      const double margin = (right - left) / 10;
      bool is_near = std::min(t - left, right - t) < margin;
      if (is_near && (was_near || !(left < t && t < right))) {
        t = right - t < t - left ? right - margin : left + margin;
        is_near = false;
      }
      was_near = is_near;
      Point point = evaluate_(t);
      left_--;
      if (too_high(point) || point.loss >= low.loss) {
        if (point.loss < low.loss) {
          high = std::move(low);
          low = std::move(point);
        } else {
          high = std::move(point);
        }
      } else if (is_flat(point)) {
        return point;
      } else {
        // Downhill from the new lower end lies the other end, or the old lower one.
        if (point.slope * (high.t - low.t) >= 0) {
          high = std::move(low);
        }
        low = std::move(point);
      }
    }
    return low;
  }

  Evaluate evaluate_;
  Point start_;
  double largest_;
  int64_t left_;
};

}  // namespace

void LBFGSOptions::serialize(serialize::OutputArchive& archive) const {
  visit(*this, Writer{archive});
  archive.write("line_search", IValue(line_search_fn().has_value()));
}
void LBFGSOptions::serialize(serialize::InputArchive& archive) {
  visit(*this, Reader{archive});
  bool searched = false;
  Reader{archive}("line_search", searched);
  line_search_fn(searched ? std::optional<std::string>("strong_wolfe") : std::nullopt);
}

std::unique_ptr<OptimizerParamState> LBFGSParamState::clone() const {
  return std::make_unique<LBFGSParamState>(*this);
}

namespace {

// Takes the last step and the change of the gradient into the history.
void remember(LBFGSParamState& m, const Tensor& grad, int64_t history_size) {
  const Tensor y = grad - m.prev_flat_grad();
  const Tensor s = m.d() * m.t();
  const Tensor curvature = y.dot(s);
  if (holds(curvature <= 1e-10)) {
    return;
  }
  m.old_dirs().push_back(y);
  m.old_stps().push_back(s);
  m.ro().push_back(curvature.reciprocal());
  for (auto* list : {&m.old_dirs(), &m.old_stps(), &m.ro()}) {
    if (static_cast<int64_t>(list->size()) > history_size) {
      list->erase(list->begin());
    }
  }
  m.H_diag(curvature / y.dot(y));
}

// -H grad, where H is the inverse Hessian that the history tells of.
Tensor direction(LBFGSParamState& m, const Tensor& grad, int64_t history_size) {
  if (m.n_iter() == 1) {
    m.old_dirs().clear();
    m.old_stps().clear();
    m.ro().clear();
    m.H_diag(ones({}, grad.options()));
    return grad.neg();
  }
  remember(m, grad, history_size);
  Tensor out = grad.neg();
  const std::vector<Tensor>& ro = m.ro();
  std::vector<Tensor> along(ro.size());
  for (size_t i = ro.size(); i-- > 0;) {
    along[i] = m.old_stps()[i].dot(out) * ro[i];
    out.sub_(m.old_dirs()[i] * along[i]);
  }
  out.mul_(m.H_diag());
  for (size_t i = 0; i < ro.size(); i++) {
    out.add_(m.old_stps()[i] * (along[i] - m.old_dirs()[i].dot(out) * ro[i]));
  }
  m.al(std::move(along));
  return out;
}

}  // namespace

LBFGS::LBFGS(std::vector<OptimizerParamGroup> groups, LBFGSOptions defaults)
    : Optimizer(std::move(groups), std::make_unique<LBFGSOptions>(defaults)) {
  RL_CHECK(param_groups().size() == 1,
           "LBFGS doesn't support per-parameter options (parameter groups)");
}
LBFGS::LBFGS(std::vector<Tensor> params, LBFGSOptions defaults)
    : LBFGS(std::vector<OptimizerParamGroup>{OptimizerParamGroup(std::move(params))},
            std::move(defaults)) {}

// The history is one of all parameters; it is the first one's.
LBFGSParamState& LBFGS::memory() {
  const std::vector<Tensor>& params = param_groups()[0].params();
  auto& held = state_[params.empty() ? nullptr : params[0].unsafeGetTensorImpl()];
  if (held == nullptr) {
    held = std::make_unique<LBFGSParamState>();
  }
  return static_cast<LBFGSParamState&>(*held);
}

Tensor LBFGS::step(LossClosure closure) {
  RL_CHECK(closure != nullptr, "LBFGS requires a closure function");
  const NoGradGuard no_grad;
  const auto& o = static_cast<const LBFGSOptions&>(param_groups()[0].options());
  RL_CHECK(!o.line_search_fn() || *o.line_search_fn() == "strong_wolfe",
           "only 'strong_wolfe' is supported");
  const std::vector<Tensor>& params = param_groups()[0].params();
  LBFGSParamState& m = memory();
  const auto real = [](const Tensor& t) { return t.is_complex() ? view_as_real(t) : t; };
  const auto gather = [&] {
    std::vector<Tensor> flat;
    for (const Tensor& p : params) {
      flat.push_back(real(p.grad().defined() ? p.grad() : zeros_like(p)).reshape(-1));
    }
    return cat(flat);
  };
  const auto move = [&](double t, const Tensor& direction) {
    int64_t offset = 0;
    for (const Tensor& p : params) {
      const Tensor own = real(p);
      own.add_(direction.slice(0, offset, offset + own.numel()).view_as(own), t);
      offset += own.numel();
    }
  };
  const int64_t limit = m.func_evals() + o.max_eval().value_or(o.max_iter() * 5 / 4);
  Tensor grad;
  const auto evaluate = [&] {
    m.func_evals()++;
    const AutoGradMode with_grad(true);
    const Tensor value = closure();
    const NoGradGuard done;
    grad = gather();
    return value;
  };

  const Tensor first = evaluate();
  double loss = number(first);
  for (int64_t left = o.max_iter(); left-- > 0;) {
    if (holds(grad.abs().max() <= o.tolerance_grad())) {
      break;
    }
    m.n_iter()++;
    m.d(direction(m, grad, o.history_size()));
    const Tensor d = m.d();
    m.prev_flat_grad(grad.clone());
    const double before = m.prev_loss() = loss;
    // Nothing is known of the curvature at first: a step of length one at most.
    const double scale =
        m.n_iter() == 1 ? std::min(1.0, number(grad.abs().sum().reciprocal())) : 1.0;
    double t = m.t() = scale * o.lr();
    const double slope = number(grad.dot(d));
    if (slope > -o.tolerance_change()) {
      break;
    }
    if (o.line_search_fn()) {
      std::vector<Tensor> here;
      for (const Tensor& p : params) {
        here.push_back(p.clone());
      }
      const auto evaluate_at = [&](double far) {
        move(far, d);
        const double value = number(evaluate());
        for (size_t i = 0; i < params.size(); i++) {
          params[i].copy_(here[i]);
        }
        return Point{far, value, grad, number(grad.dot(d))};
      };
      const Point found = LineSearch(evaluate_at, Point{0, loss, grad, slope},
                                     number(d.abs().max()), limit - m.func_evals())
                              .find(t);
      loss = found.loss;
      grad = found.grad;
      t = m.t() = found.t;
    }
    move(t, d);
    if (!o.line_search_fn() && left > 0) {
      loss = number(evaluate());
    }
    const bool small = holds(d.mul(t).abs().max() <= o.tolerance_change()) ||
                       std::abs(loss - before) < o.tolerance_change();
    if (small || m.func_evals() >= limit) {
      break;
    }
  }
  return first;
}

void LBFGS::save(serialize::OutputArchive& archive) const {
  save_groups(archive);
  const LBFGSParamState m = state_.empty()
                                ? LBFGSParamState()
                                : static_cast<const LBFGSParamState&>(*state_.begin()->second);
  serialize::OutputArchive state;
  state.write("func_evals", IValue(m.func_evals()));
  state.write("n_iter", IValue(m.n_iter()));
  state.write("t", IValue(m.t()));
  state.write("prev_loss", IValue(m.prev_loss()));
  if (m.d().defined()) {
    state.write("d", m.d());
    state.write("H_diag", m.H_diag());
    state.write("prev_flat_grad", m.prev_flat_grad());
  }
  for (size_t i = 0; i < m.ro().size(); i++) {
    state.write(str("old_dirs.", i), m.old_dirs()[i]);
    state.write(str("old_stps.", i), m.old_stps()[i]);
    state.write(str("ro.", i), m.ro()[i]);
  }
  archive.write("state.0", state);
}

void LBFGS::load(serialize::InputArchive& archive) {
  load_groups(archive);
  serialize::InputArchive state;
  archive.read("state.0", state);
  LBFGSParamState m;
  const Reader read{state};
  read("func_evals", m.func_evals());
  read("n_iter", m.n_iter());
  read("t", m.t());
  read("prev_loss", m.prev_loss());
  state.try_read("d", m.d());
  state.try_read("H_diag", m.H_diag());
  state.try_read("prev_flat_grad", m.prev_flat_grad());
  Tensor held;
  for (size_t i = 0; state.try_read(str("ro.", i), held); i++) {
    m.ro().push_back(held);
    state.read(str("old_dirs.", i), held);
    m.old_dirs().push_back(held);
    state.read(str("old_stps.", i), held);
    m.old_stps().push_back(held);
  }
  memory() = std::move(m);
}

}  // namespace rushlight::optim
