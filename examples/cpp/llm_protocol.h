// What requests may ask for, in the words of OpenAI's protocol, and what answers them.
#pragma once

#include <cstdio>
#include <ctime>
#include <random>
#include <string>
#include <vector>

#include <rushlight/json.h>

#include "llm_engine.h"

struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A string of JSON.
inline std::string json_string(const std::string& text) {
  std::string found = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      found += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(c));
      found += escaped;
    } else {
      found += c;
    }
  }
  return found + '"';
}

struct Message {
  std::string role;
  std::string content;
};

// The text of a conversation up to where the answer begins, by the marks of the best known ways.
inline std::string prompt_of(const std::vector<Message>& messages, const std::string& known) {
  std::string text;
  if (known.find("<|im_start|>") != known.npos) {
    for (const Message& m : messages) {
      text += "<|im_start|>" + m.role + "\n" + m.content + "<|im_end|>\n";
    }
    return text + "<|im_start|>assistant\n";
  }
  if (known.find("<|start_header_id|>") != known.npos) {
    const auto head = [](const std::string& role) {
      return "<|start_header_id|>" + role + "<|end_header_id|>\n\n";
    };
    for (const Message& m : messages) {
      text += head(m.role) + m.content + "<|eot_id|>";
    }
    return text + head("assistant");
  }
  if (known.find("[INST]") != known.npos) {
    std::string system;
    for (const Message& m : messages) {
      if (m.role == "system") {
        system = "<<SYS>>\n" + m.content + "\n<</SYS>>\n\n";
      } else if (m.role == "user") {
        text += "[INST] " + system + m.content + " [/INST]";
        system.clear();
      } else {
        text += " " + m.content + " </s>";
      }
    }
    return text;
  }
  for (const Message& m : messages) {
    text += m.role + ": " + m.content + "\n";
  }
  return text + "assistant:";
}

class Request {
 public:
  // Refused where the body is not understood, or asks for what is not done.
  Request(const std::string& body, bool chat) : body_(parsed(body)), chat_(chat) {
    for (const char* name : {"tools", "logprobs", "echo"}) {
      const auto found = body_.find(name);
      if (found && found->text() != "false" && found->text() != "0" && found->text() != "[]") {
        throw Refused(std::string(name) + " is not supported");
      }
    }
    if (number("n", 1, 0, 1e9) != 1 || number("best_of", 1, 0, 1e9) != 1) {
      throw Refused("n is not supported");
    }
  }

  bool streams() const { return truth(body_, "stream"); }
  bool tells_usage() const {
    const auto options = body_.find("stream_options");
    return options && options->is_object() && truth(*options, "include_usage");
  }

  std::shared_ptr<Job> job(const Engine& engine) const {
    const auto job = std::make_shared<Job>();
    job->prompt = prompt(engine);
    const int64_t room = engine.max_len() - static_cast<int64_t>(job->prompt.size());
    if (job->prompt.empty() || room <= 0) {
      throw Refused("the prompt has " + std::to_string(job->prompt.size()) +
                    " tokens; it may have 1 to " + std::to_string(engine.max_len() - 1));
    }
    const char* most = body_.find("max_completion_tokens") ? "max_completion_tokens" : "max_tokens";
    const auto wanted = whole(most, chat_ ? room : 256, 1, int64_t{1} << 30);
    job->max_tokens = std::min(wanted, room + 1);
    job->stop = stops();
    job->sampler.temperature = number("temperature", 1, 0, 10);
    job->sampler.top_k = whole("top_k", 0, 0, int64_t{1} << 30);
    job->sampler.top_p = number("top_p", 1, 0, 1);
    job->sampler.repetition_penalty = number("repetition_penalty", 1, 0.01, 100);
    job->sampler.generator = rushlight::Generator(rushlight::kCPU);
    const bool seeded = body_.find("seed").has_value();
    job->sampler.generator.set_current_seed(
        seeded ? static_cast<uint64_t>(whole("seed", 0, INT64_MIN, INT64_MAX))
               : std::random_device{}());
    return job;
  }

 private:
  using Json = rushlight::serialize::Json;

  static Json parsed(const std::string& body) {
    try {
      Json found(body, "the body");
      if (found.is_object()) {
        return found;
      }
    } catch (const std::exception& e) {
      throw Refused("the body is no JSON: " + std::string(e.what()));
    }
    throw Refused("the body must be an object");
  }
  static bool truth(const Json& of, const char* name) {
    const auto found = of.find(name);
    return found && found->is_boolean() && found->boolean();
  }

  template <class Read, class T>
  T one(const char* name, T otherwise, T low, T high, const Read& read) const {
    const auto found = body_.find(name);
    if (!found) {
      return otherwise;
    }
    try {
      const T value = read(*found);
      if (value >= low && value <= high) {
        return value;
      }
    } catch (const std::exception&) {  // said below: it is of another kind
    }
    throw Refused(std::string(name) + " cannot be " + std::string(found->text().substr(0, 100)));
  }
  double number(const char* name, double otherwise, double low, double high) const {
    return one(name, otherwise, low, high, [](const Json& j) { return j.number(); });
  }
  int64_t whole(const char* name, int64_t otherwise, int64_t low, int64_t high) const {
    return one(name, otherwise, low, high, [](const Json& j) { return j.integer(); });
  }

  std::vector<std::string> stops() const {
    std::vector<std::string> found;
    const auto stop = body_.find("stop");
    if (stop && stop->is_string()) {
      found.push_back(stop->string());
    } else if (stop && stop->is_array()) {
      stop->items([&](const Json& one) {
        if (!one.is_string()) {
          throw Refused("stop must be a string or at most four of them");
        }
        found.push_back(one.string());
      });
    } else if (stop) {
      throw Refused("stop must be a string or at most four of them");
    }
    if (found.size() > 4) {
      throw Refused("stop must be a string or at most four of them");
    }
    found.erase(std::remove(found.begin(), found.end(), std::string()), found.end());
    return found;
  }

  static std::string content_of(const Json& message) {
    const auto content = message.find("content");
    std::string text;
    if (content && content->is_string()) {
      text = content->string();
    } else if (content && content->is_array()) {
      content->items([&](const Json& part) {
        const auto said = part.is_object() ? part.find("text") : std::nullopt;
        if (!said || !said->is_string()) {
          throw Refused("the content of a message must be text");
        }
        text += said->string();
      });
    } else {
      throw Refused("the content of a message must be text");
    }
    return text;
  }

  std::vector<int64_t> conversation(const Engine& engine) const {
    std::vector<Message> messages;
    const auto given = body_.find("messages");
    if (given && given->is_array()) {
      given->items([&](const Json& one) {
        const auto role = one.is_object() ? one.find("role") : std::nullopt;
        const std::string name = role && role->is_string() ? role->string() : "";
        if (name != "system" && name != "developer" && name != "user" && name != "assistant") {
          throw Refused("a message has one of the roles system, developer, user, assistant");
        }
        messages.push_back({name == "developer" ? "system" : name, content_of(one)});
      });
    }
    if (messages.empty() || messages.size() > 256) {
      throw Refused("messages must be a list of 1 to 256 messages");
    }
    return engine.tokenizer().encode(prompt_of(messages, engine.chat_template()), true, true);
  }

  std::vector<int64_t> prompt(const Engine& engine) const {
    if (chat_) {
      return conversation(engine);
    }
    const auto given = body_.find("prompt");
    if (given && given->is_string()) {
      return engine.tokenizer().encode(given->string(), true);
    }
    if (!given || !given->is_array()) {
      throw Refused("prompt must be a string or a list of tokens");
    }
    std::vector<int64_t> tokens;
    given->items([&](const Json& one) {
      int64_t token = -1;
      try {
        token = one.integer();
      } catch (const std::exception&) {  // said below: it is no number
      }
      if (token < 0 || token >= engine.tokenizer().size()) {
        throw Refused("prompt must be a string or a list of tokens");
      }
      tokens.push_back(token);
    });
    return tokens;
  }

  Json body_;
  bool chat_;
};

// The objects that answer a request.
class Reply {
 public:
  Reply(std::shared_ptr<Job> job, const std::string& model, bool chat)
      : job_(std::move(job)), chat_(chat) {
    std::random_device random;
    char id[40];
    std::snprintf(id, sizeof id, "%s-%08x%08x%08x", chat ? "chatcmpl" : "cmpl", random(), random(),
                  random());
    common_ = "{\"id\": " + json_string(id) +
              ", \"created\": " + std::to_string(std::time(nullptr)) +
              ", \"model\": " + json_string(model);
  }

  // A piece of an answer that is streamed.
  std::string piece(const std::string& text, bool first = false, bool ended = false) const {
    if (!chat_) {
      return object("text_completion", "\"text\": " + json_string(text), ended) + "}";
    }
    std::string delta = first ? "\"role\": \"assistant\", " : "";
    if (first || !text.empty()) {
      delta += "\"content\": " + json_string(text);
    }
    return object("chat.completion.chunk", "\"delta\": {" + delta + "}", ended) + "}";
  }
  std::string usage_alone() const {
    return common_ + ", \"object\": \"" + (chat_ ? "chat.completion.chunk" : "text_completion") +
           "\", \"choices\": [], " + usage() + "}";
  }
  std::string whole(const std::string& text) const {
    const std::string choice =
        chat_ ? "\"message\": {\"role\": \"assistant\", \"content\": " + json_string(text) + "}"
              : "\"text\": " + json_string(text);
    return object(chat_ ? "chat.completion" : "text_completion", choice, true) + ", " + usage() +
           "}";
  }

 private:
  std::string object(const char* kind, const std::string& choice, bool ended) const {
    return common_ + ", \"object\": \"" + kind + "\", \"choices\": [{\"index\": 0, " + choice +
           ", \"logprobs\": null, \"finish_reason\": " +
           (ended ? json_string(job_->reason) : "null") + "}]";
  }
  std::string usage() const {
    const auto given = static_cast<int64_t>(job_->prompt.size());
    const int64_t made = job_->made;
    return "\"usage\": {\"prompt_tokens\": " + std::to_string(given) +
           ", \"completion_tokens\": " + std::to_string(made) +
           ", \"total_tokens\": " + std::to_string(given + made) + "}";
  }

  std::shared_ptr<Job> job_;
  bool chat_;
  std::string common_;
};
