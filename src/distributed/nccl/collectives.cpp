// Collectives and messages as calls of NCCL.
#include "distributed/nccl/backend.h"

#include <algorithm>

namespace rushlight::distributed {

namespace {

size_t size_of(const Tensor& t) { return static_cast<size_t>(bytes_of(t)); }

// Whether tensors lie one after the other.
bool are_adjacent(const Tensors& list) {
  const char* at = memory(list[0]);
  for (const Tensor& t : list) {
    if (!t.is_contiguous() || memory(t) != at) {
      return false;
    }
    at += bytes_of(t);
  }
  return true;
}
bool have_one_length(const Tensors& list) {
  return std::all_of(list.begin(), list.end(),
                     [&](const Tensor& t) { return t.numel() == list[0].numel(); });
}
// Memory for tensors of one length, and the part of it that is one tensor's.
Tensor make_flat_buffer(const Tensors& list) {
  return make_empty({static_cast<int64_t>(list.size()) * list[0].numel()}, list[0].dtype(),
                    list[0].device());
}
Tensor part_of(const Tensor& joined, size_t i, const Tensor& like) {
  ViewSpec spec{DimVector(like.sizes()), contiguous_strides(like.sizes())};
  spec.offset = static_cast<int64_t>(i) * like.numel();
  return make_view(joined, spec);
}

size_t count_of(const Tensor& t) {
  return static_cast<size_t>(t.numel()) * (is_complex(t.dtype()) ? 2 : 1);
}

}  // namespace

WorkPtr NcclBackend::broadcast(Tensors tensors, int root, Milliseconds timeout) {
  check_rank(root);
  return queue("broadcast", tensors[0], timeout, [&](Batch& b) {
    for (const Tensor& t : tensors) {
      const Tensor d = rank() == root ? b.input(t) : b.output(t);
      api_.check(api_.Broadcast(memory(d), memory(d), size_of(d), nccl::bytes_type, root, b.comm(),
                                b.stream()));
    }
  });
}

WorkPtr NcclBackend::all_reduce(Tensors tensors, Reduction op, Milliseconds timeout) {
  for (const Tensor& t : tensors) {
    check_op(t.dtype(), op);
  }
  return queue("all_reduce", tensors[0], timeout, [&](Batch& b) {
    for (const Tensor& t : tensors) {
      const Tensor d = b.in_place(t);
      api_.check(api_.AllReduce(memory(d), memory(d), count_of(d), nccl::type_of(d.dtype()),
                                op_of(d.dtype(), op, b), b.comm(), b.stream()));
    }
  });
}

WorkPtr NcclBackend::reduce(Tensor tensor, int root, Reduction op, Milliseconds timeout) {
  check_rank(root);
  check_op(tensor.dtype(), op);
  return queue("reduce", tensor, timeout, [&](Batch& b) {
    const Tensor d = rank() == root ? b.in_place(tensor) : b.input(tensor);
    reduce_to(b, d, d, root, op);
  });
}

WorkPtr NcclBackend::all_gather(Tensors outputs, Tensor input, Milliseconds timeout) {
  return queue("all_gather", input, timeout, [&](Batch& b) {
    const Tensor own = b.input(input);
    if (!have_one_length(outputs)) {
      for (int r = 0; r < size(); r++) {
        const Tensor to = b.output(outputs[static_cast<size_t>(r)]);
        api_.check(api_.Broadcast(memory(own), memory(to), size_of(to), nccl::bytes_type, r,
                                  b.comm(), b.stream()));
      }
      return;
    }
    const auto gather = [&](const Tensor& to) {
      api_.check(api_.AllGather(memory(own), memory(to), size_of(own), nccl::bytes_type, b.comm(),
                                b.stream()));
    };
    for (const Tensor& t : outputs) {
      b.keep_tensor(t);
    }
    if (are_adjacent(outputs)) {
      gather(outputs[0]);
      return;
    }
    const Tensor joined = b.keep_tensor(make_flat_buffer(outputs));
    gather(joined);
    b.after.emplace_back([=] {
      for (size_t r = 0; r < outputs.size(); r++) {
        copy_raw(outputs[r], part_of(joined, r, outputs[r]), true);
      }
    });
  });
}

WorkPtr NcclBackend::reduce_scatter(Tensor output, Tensors inputs, Reduction op,
                                    Milliseconds timeout) {
  check_op(output.dtype(), op);
  return queue("reduce_scatter", output, timeout, [&](Batch& b) {
    const Tensor to = b.output(output);
    if (!have_one_length(inputs)) {
      for (int r = 0; r < size(); r++) {
        reduce_to(b, b.input(inputs[static_cast<size_t>(r)]), to, r, op);
      }
      return;
    }
    Tensor joined = inputs[0];
    for (const Tensor& t : inputs) {
      b.keep_tensor(t);
    }
    if (!are_adjacent(inputs)) {
      joined = b.keep_tensor(make_flat_buffer(inputs));
      for (size_t r = 0; r < inputs.size(); r++) {
        copy_raw(part_of(joined, r, inputs[r]), inputs[r], true);
      }
    }
    api_.check(api_.ReduceScatter(memory(joined), memory(to), count_of(to),
                                  nccl::type_of(to.dtype()), op_of(to.dtype(), op, b), b.comm(),
                                  b.stream()));
  });
}

WorkPtr NcclBackend::gather(Tensors outputs, Tensor input, int root, Milliseconds timeout) {
  check_rank(root);
  return queue("gather", input, timeout, [&](Batch& b) {
    send_to(b, b.input(input), root);
    if (rank() == root) {
      for (int r = 0; r < size(); r++) {
        receive_from(b, b.output(outputs[static_cast<size_t>(r)]), r);
      }
    }
  });
}

WorkPtr NcclBackend::scatter(Tensor output, Tensors inputs, int root, Milliseconds timeout) {
  check_rank(root);
  return queue("scatter", output, timeout, [&](Batch& b) {
    if (rank() == root) {
      for (int r = 0; r < size(); r++) {
        send_to(b, b.input(inputs[static_cast<size_t>(r)]), r);
      }
    }
    receive_from(b, b.output(output), root);
  });
}

WorkPtr NcclBackend::all_to_all(Tensors outputs, Tensors inputs, Milliseconds timeout) {
  return queue("all_to_all", inputs[0], timeout, [&](Batch& b) {
    for (int r = 0; r < size(); r++) {
      send_to(b, b.input(inputs[static_cast<size_t>(r)]), r);
      receive_from(b, b.output(outputs[static_cast<size_t>(r)]), r);
    }
  });
}

WorkPtr NcclBackend::barrier(Milliseconds timeout) {
  const Tensor one = make_empty({1}, ScalarType::Float, Device(kCUDA));
  fill_raw(one, 0);
  WorkPtr work = all_reduce({one}, Reduction{}, timeout);
  if (work != nullptr) {
    static_cast<Queued&>(*work).host_waits = true;
  }
  return work;
}

WorkPtr NcclBackend::send(Tensor tensor, int to, uint32_t /*tag*/, Milliseconds timeout) {
  check_peer(to);
  return queue(
      str("send to rank ", to), tensor, timeout,
      [&](Batch& b) { send_to(b, b.input(tensor), number_of(b, to)); }, to);
}

WorkPtr NcclBackend::receive(Tensor tensor, int from, uint32_t /*tag*/, Milliseconds timeout) {
  RL_CHECK_VALUE(from >= 0, "NCCL receives from a rank that is named: recv(tensor, src)");
  check_peer(from);
  return queue(
      str("recv from rank ", from), tensor, timeout,
      [&](Batch& b) { receive_from(b, b.output(tensor), number_of(b, from)); }, from);
}

void NcclBackend::check_op(ScalarType dtype, const Reduction& op) {
  const bool bits =
      op.kind == ReduceKind::BAnd || op.kind == ReduceKind::BOr || op.kind == ReduceKind::BXor;
  RL_CHECK_VALUE(!bits, "Cannot use ReduceOp.BAND, BOR or BXOR with NCCL");
  RL_CHECK_AS(TypeError, dtype != ScalarType::Bool || op.kind != ReduceKind::Avg,
              "Cannot use ReduceOp.AVG with boolean inputs");
  const bool adds =
      op.kind == ReduceKind::Sum || op.kind == ReduceKind::Avg || op.kind == ReduceKind::PremulSum;
  RL_CHECK_VALUE(adds || !is_complex(dtype), "complex numbers have sums and means alone");
  RL_CHECK_VALUE(op.kind != ReduceKind::PremulSum || is_floating(dtype) || is_complex(dtype),
                 "PREMUL_SUM is one of floats, not of ", dtype);
  nccl::type_of(dtype);
}

nccl::Op NcclBackend::op_of(ScalarType dtype, const Reduction& op, Batch& b) {
  switch (op.kind) {
    case ReduceKind::Sum:
      return dtype == ScalarType::Bool ? nccl::max : nccl::sum;  // any
    case ReduceKind::Avg:
      return nccl::average;
    case ReduceKind::Product:
      return nccl::product;
    case ReduceKind::Min:
      return nccl::min;
    case ReduceKind::Max:
      return nccl::max;
    default:
      break;
  }
  // Of a sum of products with a number, which NCCL reads at once.
  double as_double = op.factor;
  auto as_float = static_cast<float>(op.factor);
  Half as_half(as_float);
  BFloat16 as_bfloat(as_float);
  const nccl::Type type = nccl::type_of(dtype);
  void* const factor = type == nccl::type_of(ScalarType::Double)  ? static_cast<void*>(&as_double)
                       : type == nccl::type_of(ScalarType::Float) ? static_cast<void*>(&as_float)
                       : type == nccl::type_of(ScalarType::Half)  ? static_cast<void*>(&as_half)
                                                                  : static_cast<void*>(&as_bfloat);
  nccl::Op made = 0;
  constexpr int on_the_host = 1;
  api_.check(api_.RedOpCreatePreMulSum(&made, factor, type, on_the_host, b.comm()));
  b.ops.push_back(made);
  return made;
}

void NcclBackend::reduce_to(Batch& b, const Tensor& from, const Tensor& to, int root,
                            const Reduction& op) {
  api_.check(api_.Reduce(memory(from), memory(to), count_of(from), nccl::type_of(from.dtype()),
                         op_of(from.dtype(), op, b), root, b.comm(), b.stream()));
}

void NcclBackend::send_to(Batch& b, const Tensor& from, int to) {
  if (from.numel() != 0) {
    api_.check(api_.Send(memory(from), size_of(from), nccl::bytes_type, to, b.comm(), b.stream()));
  }
}

void NcclBackend::receive_from(Batch& b, const Tensor& to, int from) {
  if (to.numel() != 0) {
    api_.check(api_.Recv(memory(to), size_of(to), nccl::bytes_type, from, b.comm(), b.stream()));
  }
}

}  // namespace rushlight::distributed
