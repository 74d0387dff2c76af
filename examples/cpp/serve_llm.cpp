// Serves a language model of a GGUF file to OpenAI's clients on this machine (cpp-httplib):
//
//   build/serve_llm model.gguf [--port 8080] [--context N] [--threads N] [--waiting 16]
//                   [--together 4] [--cache float16] [--invariant 0]
//   curl -H "Content-Type: application/json" localhost:8080/v1/completions \
//     -d '{"prompt": "Once upon", "max_tokens": 50, "stream": true}'
//
// /v1/completions and /v1/chat/completions, whole or streamed, /v1/models and /health, which says
// 503 while the file is loaded. Requests wait in a queue; --together of them are answered side by
// side, by one network; with --invariant 1 an answer's bits do not depend on what else is asked.
// Who goes away from a stream ends it; SIGINT and SIGTERM end the server.
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>
#include <thread>

#include <rushlight/batch_invariant.h>
#include <rushlight/parallel.h>

#include <httplib.h>

#include "llm_engine.h"
#include "llm_protocol.h"

namespace {

struct Settings {
  std::string path;
  std::string name;  // of the model
  int port = 8080;
  int threads = 0;
  size_t waiting = 16;
  rushlight::language::LlamaOptions options;
};

[[noreturn]] void tell_usage(const char* program) {
  std::fprintf(stderr,
               "usage: %s model.gguf [--port 8080] [--context N] [--threads N] [--waiting 16]\n"
               "       [--together 4] [--cache float32|float16|bfloat16|int8] [--invariant 0|1]\n",
               program);
  std::exit(2);
}

Settings settings(int argc, char** argv) {
  if (argc < 2 || argc % 2 != 0) {
    tell_usage(argv[0]);
  }
  Settings s;
  s.path = argv[1];
  s.name = s.path.substr(s.path.rfind('/') + 1);
  s.options.sequences = 4;
  s.options.cache_dtype = rushlight::kFloat16;
  for (int i = 2; i < argc; i += 2) {
    const std::string name = argv[i];
    const int value = std::atoi(argv[i + 1]);
    const std::map<std::string, rushlight::ScalarType> caches = {{"float32", rushlight::kFloat32},
                                                                 {"float16", rushlight::kFloat16},
                                                                 {"bfloat16", rushlight::kBFloat16},
                                                                 {"int8", rushlight::kInt8}};
    if (name == "--port" && value >= 0) {
      s.port = value;
    } else if (name == "--context" && value > 0) {
      s.options.max_len = value;
    } else if (name == "--threads" && value > 0) {
      s.threads = value;
    } else if (name == "--waiting" && value > 0) {
      s.waiting = static_cast<size_t>(value);
    } else if (name == "--together" && value > 0) {
      s.options.sequences = value;
    } else if (name == "--invariant" && (value == 0 || value == 1)) {
      rushlight::use_batch_invariant(value == 1);
    } else if (name == "--cache" && caches.count(argv[i + 1]) != 0) {
      s.options.cache_dtype = caches.at(argv[i + 1]);
    } else {
      tell_usage(argv[0]);
    }
  }
  return s;
}

void fail(httplib::Response& response, int status, const std::string& text) {
  response.status = status;
  response.set_content("{\"error\": {\"message\": " + json_string(text) + ", \"type\": \"" +
                           (status < 500 ? "invalid_request_error" : "server_error") +
                           "\", \"param\": null, \"code\": null}}",
                       "application/json");
}

// Pages of others cannot ask under their own name.
bool is_local(const httplib::Request& request) {
  const std::string host = request.get_header_value("Host");
  const size_t colon = host.rfind(':');
  const bool has_port =
      colon != host.npos && host.find_first_not_of("0123456789", colon + 1) == host.npos;
  const std::string name = has_port ? host.substr(0, colon) : host;
  return name == "localhost" || name == "127.0.0.1" || name == "[::1]";
}

void stream(httplib::Response& response, const std::shared_ptr<Job>& job, const Reply& reply,
            bool tells_usage) {
  response.set_header("Cache-Control", "no-cache");
  const auto begun = std::make_shared<bool>(false);
  response.set_chunked_content_provider(
      "text/event-stream",
      [job, reply, tells_usage, begun](size_t, httplib::DataSink& sink) {
        const auto say = [&](const std::string& data) {
          const std::string event = "data: " + data + "\n\n";
          return sink.is_writable() && sink.write(event.data(), event.size());
        };
        if (!std::exchange(*begun, true)) {
          return say(reply.piece("", true));
        }
        std::string piece;
        try {
          if (job->pieces.take(piece)) {
            return say(reply.piece(piece));
          }
          say(reply.piece("", false, true));
          if (tells_usage) {
            say(reply.usage_alone());
          }
          say("[DONE]");
        } catch (const std::exception& e) {
          say("{\"error\": {\"message\": " + json_string(e.what()) +
              ", \"type\": \"server_error\"}}");
        }
        sink.done();
        return true;
      },
      [job](bool) { job->cancelled = true; });  // it is over, or whoever asked is gone
}

void complete(const httplib::Request& request, httplib::Response& response, Engine& engine,
              const std::string& model, bool chat) {
  try {
    // Pages of others may send forms, but no JSON.
    if (request.get_header_value("Content-Type").rfind("application/json", 0) != 0) {
      throw Refused("the body must be application/json");
    }
    const auto [is_well, state] = engine.state();
    if (!is_well) {
      throw Engine::Busy(state);
    }
    const Request asked(request.body, chat);
    const std::shared_ptr<Job> job = asked.job(engine);
    const Reply reply(job, model, chat);
    engine.submit(job);
    if (asked.streams()) {
      stream(response, job, reply, asked.tells_usage());
      return;
    }
    std::string text;
    std::string piece;
    while (job->pieces.take(piece)) {
      text += piece;
    }
    response.set_content(reply.whole(text), "application/json");
  } catch (const Refused& e) {
    fail(response, 400, e.what());
  } catch (const Engine::Busy& e) {
    fail(response, 503, e.what());
  } catch (const std::invalid_argument& e) {
    fail(response, 400, e.what());
  } catch (const std::exception& e) {
    fail(response, engine.state().first ? 500 : 503, e.what());
  }
}

void set_paths(httplib::Server& server, Engine& engine, const std::string& model) {
  server.set_payload_max_length(size_t{4} << 20);
  server.set_read_timeout(30);
  server.set_pre_routing_handler([](const httplib::Request& request, httplib::Response& response) {
    if (is_local(request)) {
      return httplib::Server::HandlerResponse::Unhandled;
    }
    fail(response, 403, "this server has another name");
    return httplib::Server::HandlerResponse::Handled;
  });
  server.Get("/health", [&](const httplib::Request&, httplib::Response& response) {
    const auto [is_well, state] = engine.state();
    response.status = is_well ? 200 : 503;
    response.set_content("{\"status\": " + json_string(state) + "}", "application/json");
  });
  server.Get("/v1/models", [model](const httplib::Request&, httplib::Response& response) {
    response.set_content("{\"object\": \"list\", \"data\": [{\"id\": " + json_string(model) +
                             ", \"object\": \"model\", \"created\": 0, \"owned_by\": \"local\"}]}",
                         "application/json");
  });
  for (const bool chat : {false, true}) {
    server.Post(
        chat ? "/v1/chat/completions" : "/v1/completions",
        [&engine, model, chat](const httplib::Request& request, httplib::Response& response) {
          complete(request, response, engine, model, chat);
        });
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Settings s = settings(argc, argv);
  if (s.threads > 0) {
    rushlight::set_num_threads(s.threads);
  }
  // Signals wait until this thread asks for them.
  sigset_t signs;
  sigemptyset(&signs);
  sigaddset(&signs, SIGINT);
  sigaddset(&signs, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signs, nullptr);

  Engine engine(s.path, s.options, s.waiting);
  httplib::Server server;
  // A thread for each who is answered or waits, and a few for those who are refused.
  const size_t threads = s.waiting + static_cast<size_t>(s.options.sequences) + 8;
  server.new_task_queue = [threads] { return new httplib::ThreadPool(threads); };
  set_paths(server, engine, s.name);
  const int port = s.port == 0 ? server.bind_to_any_port("127.0.0.1")
                               : (server.bind_to_port("127.0.0.1", s.port) ? s.port : -1);
  if (port < 0) {
    std::fprintf(stderr, "port %d cannot be had\n", s.port);
    return 1;
  }
  std::atomic<bool> ended{false};
  std::thread listening([&] {
    server.listen_after_bind();
    ended = true;
  });
  std::printf("http://127.0.0.1:%d/\n", port);
  std::fflush(stdout);
  std::thread watching([&] {
    engine.wait();
    if (!engine.error().empty()) {
      std::fprintf(stderr, "%s\n", engine.state().second.c_str());
      kill(getpid(), SIGTERM);
    }
  });
  int sign = 0;
  sigwait(&signs, &sign);
  const bool failed = !engine.error().empty();
  engine.stop();                            // first, as threads wait for its answers
  while (!server.is_running() && !ended) {  // what does not run yet cannot be stopped
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  server.stop();
  listening.join();
  watching.join();
  return failed ? 1 : 0;
}
