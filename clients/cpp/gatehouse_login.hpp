// SPDX-License-Identifier: Apache-2.0
//
// Sign a player in to a game with Gatehouse: copy this file into your game. C++17 and libcurl (7.66 or newer).
//
//     gatehouse::Options options;
//     options.app_id = 50001;
//     options.factor = gatehouse::device_factor("device");
//     gatehouse::Result result = gatehouse::sign_in("https://sso.studio.example", options);
//     if (result.outcome == gatehouse::Outcome::ok) greet(result.nick);
//
// sign_in opens the system browser, waits until the player has confirmed there, and returns. It blocks: run it in a
// thread of its own, and set *options.cancel when the player gives up. Call curl_global_init once, before any thread
// starts. Only device_factor writes a file.
//
// Sign-in of guests and with a platform, and accounts for guests, are in gatehouse_guest.hpp.

#ifndef GATEHOUSE_LOGIN_HPP
#define GATEHOUSE_LOGIN_HPP

#include <curl/curl.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#ifdef _WIN32
#include <windows.h>
#include <shellapi.h>
#else
#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
extern char** environ;
#endif

namespace gatehouse {

// What the player needs: open url on any device; code and qr (an SVG data URI) are there when asked for.
struct Session {
    std::string gsid, url, code, qr, location;
};

enum class Outcome {
    ok,           // signed in
    refused,      // the player said no, or the service did; error is a record id that its operators can look up. For a
                  // banned player reason is "banned": show public_text, and until (Unix time, 0 for no end). For guests
                  // and platforms it can be "second_factor": ask for a code and call enter_code; "wrong_code": ask
                  // again; "no_account": sign in through the browser; "terms": open url, then sign in again;
                  // "throttled"; "login_error": the key or ticket is not accepted
    cancelled,    // the game cancelled
    unreachable,  // the service cannot be reached; error says how
};

struct Result {
    Outcome outcome = Outcome::unreachable;
    std::string user_id, nick, jwt, token, error, reason, public_text;
    std::int64_t until = 0;
    std::string url;         // where the player accepts the terms
    std::string request_id;  // for enter_code; the methods are in body
    std::string body;  // everything the service told, as JSON
};

struct Options {
    std::int64_t app_id = 0;
    std::string factor;
    bool code = false;
    bool qr = false;
    std::map<std::string, std::string> more;              // further fields of getGsid
    std::function<void(const Session&)> show;             // instead of opening the browser
    std::function<void(const std::string&)> on_state;     // waiting, opened, signing_in, confirmed, cancelled
    std::shared_ptr<std::atomic<bool>> cancel;            // set it to true from any thread
    std::chrono::milliseconds poll_timeout{40'000};       // a poll is held for up to 30 seconds
    std::chrono::milliseconds patience{90'000};           // without a whole answer until the service is unreachable
};

namespace detail {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr char game_session[] = "/proxy/api/gameSession/";
constexpr std::size_t longest_answer = 1 << 20;
constexpr milliseconds short_timeout{15'000};    // for everything that is not held
constexpr milliseconds least_timeout{1'000};     // what comes at the end of all patience is still a try
constexpr milliseconds session_lives{1'200'000};  // no session of the service gets older
constexpr milliseconds cancel_seen_within{100};
constexpr long longest_pause = 90;  // seconds: an unpolled session ends after 120, a longer Retry-After is an end

inline bool starts_with(std::string_view text, std::string_view start) {
    return text.substr(0, start.size()) == start;
}

inline bool only(std::string_view text, std::string_view marks) {
    return std::all_of(text.begin(), text.end(), [&](unsigned char c) {
        return (c < 128 && std::isalnum(c)) || marks.find(static_cast<char>(c)) != std::string_view::npos;
    });
}

// https anywhere, plain http to this very machine; no user part, no blanks, nothing a command line could misread.
inline bool is_address(std::string_view url, bool with_query) {
    const bool secure = starts_with(url, "https://");
    if (!secure && !starts_with(url, "http://")) return false;
    url.remove_prefix(secure ? 8 : 7);
    const auto host_end = std::min(url.find_first_of("/?"), url.size());
    std::string_view host = url.substr(0, host_end), rest = url.substr(host_end);
    const auto bracket = host.find(']');
    const auto colon = host.find(':', bracket == std::string_view::npos ? 0 : bracket);
    const auto port = colon == std::string_view::npos ? std::string_view{} : host.substr(colon + 1);
    if (colon != std::string_view::npos) {
        if (port.empty() || port.size() > 5 || port.find_first_not_of("0123456789") != port.npos) return false;
        host = host.substr(0, colon);
    }
    if (!secure && host != "localhost" && host != "127.0.0.1" && host != "[::1]") return false;
    if (host.empty() || !only(host, starts_with(host, "[") ? ".:[]" : ".-")) return false;
    const auto query = std::min(rest.find('?'), rest.size());
    if (!with_query && query != rest.size()) return false;
    return only(rest.substr(0, query), "._~/-") && only(rest.substr(query), "._~%&=+/-?");
}

// -- JSON: the members of one object; nested objects are checked and kept as text ------------------------------------

struct Value {
    enum class Kind { text, number, object, other } kind = Kind::other;
    std::string text;
};

using Object = std::map<std::string, Value>;

class Json {
public:
    // Nothing when the text is not one JSON object.
    static std::optional<Object> object(std::string_view text) {
        Json json{text};
        Object found;
        if (!json.members(&found, 0)) return std::nullopt;
        json.blanks();
        if (json.at_ != text.size()) return std::nullopt;
        return found;
    }

private:
    static constexpr int deepest = 32;

    explicit Json(std::string_view text) : text_{text} {}

    char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

    bool take(char mark) {
        blanks();
        if (peek() != mark || at_ == text_.size()) return false;
        ++at_;
        return true;
    }

    void blanks() {
        while (at_ < text_.size() && std::string_view{" \t\r\n"}.find(text_[at_]) != std::string_view::npos) ++at_;
    }

    bool members(Object* into, int depth) {
        if (depth > deepest || !take('{')) return false;
        if (take('}')) return true;
        do {
            std::string name;
            Value value;
            blanks();
            if (!string(name) || !take(':') || !any(value, depth + 1)) return false;
            if (into != nullptr) (*into)[std::move(name)] = std::move(value);
        } while (take(','));
        return take('}');
    }

    bool elements(int depth) {
        if (depth > deepest || !take('[')) return false;
        if (take(']')) return true;
        do {
            Value value;
            if (!any(value, depth + 1)) return false;
        } while (take(','));
        return take(']');
    }

    bool any(Value& value, int depth) {
        blanks();
        switch (peek()) {
            case '{': return nested(value, depth);
            case '[': return elements(depth);
            case '"': value.kind = Value::Kind::text; return string(value.text);
            case 't': return word("true");
            case 'f': return word("false");
            case 'n': return word("null");
            default: value.kind = Value::Kind::number; return number(value.text);
        }
    }

    bool nested(Value& value, int depth) {
        const auto from = at_;
        if (!members(nullptr, depth)) return false;
        value.kind = Value::Kind::object;
        value.text = std::string{text_.substr(from, at_ - from)};
        return true;
    }

    bool word(std::string_view wanted) {
        if (text_.substr(at_, wanted.size()) != wanted) return false;
        at_ += wanted.size();
        return true;
    }

    std::size_t digits() {
        const auto from = at_;
        while (peek() >= '0' && peek() <= '9') ++at_;
        return at_ - from;
    }

    bool number(std::string& into) {
        const auto from = at_;
        if (peek() == '-') ++at_;
        const bool zero = peek() == '0';
        const auto whole = digits();
        if (whole == 0 || (zero && whole > 1)) return false;
        if (peek() == '.') {
            ++at_;
            if (digits() == 0) return false;
        }
        if (peek() == 'e' || peek() == 'E') {
            ++at_;
            if (peek() == '+' || peek() == '-') ++at_;
            if (digits() == 0) return false;
        }
        into = std::string{text_.substr(from, at_ - from)};
        return true;
    }

    bool string(std::string& into) {
        if (peek() != '"') return false;
        for (++at_; at_ < text_.size(); ++at_) {
            const char c = text_[at_];
            if (c == '"') {
                ++at_;
                return true;
            }
            if (static_cast<unsigned char>(c) < 0x20) return false;
            if (c != '\\') {
                into += c;
            } else if (!escaped(into)) {
                return false;
            }
        }
        return false;
    }

    bool escaped(std::string& into) {
        static constexpr std::string_view marks = "\"\\/bfnrt", meant = "\"\\/\b\f\n\r\t";
        ++at_;
        if (peek() == 'u') return unicode(into);
        const auto which = at_ < text_.size() ? marks.find(text_[at_]) : std::string_view::npos;
        if (which == std::string_view::npos) return false;
        into += meant[which];
        return true;
    }

    bool unicode(std::string& into) {
        std::uint32_t point = 0;
        if (!four(point)) return false;
        if (point >= 0xDC00 && point < 0xE000) return false;
        if (point >= 0xD800 && point < 0xDC00) {
            std::uint32_t low = 0;
            if (text_.substr(at_ + 1, 2) != "\\u") return false;
            at_ += 2;
            if (!four(low) || low < 0xDC00 || low > 0xDFFF) return false;
            point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00);
        }
        append(into, point);
        return true;
    }

    // Stands on the u before, and on the last digit after.
    bool four(std::uint32_t& point) {
        const auto digits = text_.substr(std::min(at_ + 1, text_.size()), 4);
        if (digits.size() < 4 || digits.find_first_not_of("0123456789abcdefABCDEF") != digits.npos) return false;
        point = static_cast<std::uint32_t>(std::stoul(std::string{digits}, nullptr, 16));
        at_ += 4;
        return true;
    }

    static void append(std::string& into, std::uint32_t point) {
        const auto byte = [&](std::uint32_t value) { into += static_cast<char>(value); };
        if (point < 0x80) return byte(point);
        if (point < 0x800) {
            byte(0xC0 | point >> 6);
        } else {
            if (point < 0x10000) {
                byte(0xE0 | point >> 12);
            } else {
                byte(0xF0 | point >> 18);
                byte(0x80 | (point >> 12 & 0x3F));
            }
            byte(0x80 | (point >> 6 & 0x3F));
        }
        byte(0x80 | (point & 0x3F));
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

inline std::string json_string(std::string_view text) {
    static constexpr char hex[] = "0123456789abcdef";
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            out += {'\\', c};
        } else if (static_cast<unsigned char>(c) < 0x20) {
            out += std::string{"\\u00"} + hex[c >> 4 & 15] + hex[c & 15];
        } else {
            out += c;
        }
    }
    return out + '"';
}

inline std::string text_of(const Object& object, const std::string& name) {
    const auto found = object.find(name);
    return found != object.end() && found->second.kind == Value::Kind::text ? found->second.text : "";
}

inline std::int64_t time_of(const Object& object, const std::string& name) {
    const auto found = object.find(name);
    if (found == object.end() || found->second.kind != Value::Kind::number) return 0;
    const std::string& digits = found->second.text;
    const bool whole = digits.size() < 13 && digits.find_first_not_of("0123456789") == digits.npos;
    return whole ? std::stoll(digits) : 0;
}

inline long seconds_of(std::string_view digits, long otherwise) {
    const bool whole = !digits.empty() && digits.size() < 8 && digits.find_first_not_of("0123456789") == digits.npos;
    return whole ? std::stol(std::string{digits}) : otherwise;
}

// -- HTTP ------------------------------------------------------------------------------------------------------------

struct Answer {
    long http = 0;  // 0 when there was no answer
    bool timed_out = false, cancelled = false;
    std::string error, body, location, retry_after;
    Object members;
};

inline std::size_t keep_body(char* data, std::size_t, std::size_t size, void* answer) {
    auto& body = static_cast<Answer*>(answer)->body;
    if (body.size() + size > longest_answer) return 0;
    body.append(data, size);
    return size;
}

inline std::size_t keep_header(char* data, std::size_t, std::size_t size, void* kept) {
    auto& answer = *static_cast<Answer*>(kept);
    const std::string_view line{data, size};
    const auto colon = line.find(':');
    if (colon == line.npos) return size;
    std::string name{line.substr(0, colon)};
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    const auto from = line.find_first_not_of(" \t", colon + 1), to = line.find_last_not_of(" \t\r\n");
    const auto value = from == line.npos || to < from ? std::string_view{} : line.substr(from, to - from + 1);
    if (name == "location") answer.location = value;
    if (name == "retry-after") answer.retry_after = value;
    return size;
}

class Client {
public:
    Client(std::string base_url, const Options& options) : base_{std::move(base_url)}, options_{options} {
        if (!is_address(base_, false)) throw std::invalid_argument("base_url must be https, or http on this machine");
        while (base_.back() == '/') base_.pop_back();
    }

    std::optional<Session> enter(const std::string& asked, Result& ended) {
        const Answer answer = post(std::string{game_session} + "getGsid", asked);
        Session session;
        session.gsid = text_of(answer.members, "gsid");
        session.url = text_of(answer.members, "url");
        session.code = text_of(answer.members, "code");
        session.qr = text_of(answer.members, "qr");
        session.location = location_in(answer.location);
        const std::string status = text_of(answer.members, "status");
        if (status == "OK" && !session.gsid.empty() && is_address(session.url, true)) return session;
        if (answer.cancelled) {
            ended.outcome = Outcome::cancelled;
        } else if (status == "ERROR") {
            ended = refused(answer);
        } else {
            ended = unreachable(answer);
        }
        return std::nullopt;
    }

    Result wait(const Session& session) {
        const auto started = answered_ = Clock::now();
        milliseconds pause{1'000};
        while (Clock::now() - started < session_lives) {
            const std::string asked = "{\"gsid\":" + json_string(session.gsid) + ",\"states\":\"1\"}";
            const Answer answer = send(std::string{game_session} + "getGsidResult", asked, session.location, options_.poll_timeout, true);
            long seconds = -1;  // there was no answer
            if (auto result = judge(answer, seconds)) return *result;
            milliseconds before_next{1'000 * seconds};
            if (seconds >= 0) {
                answered_ = Clock::now();
                pause = milliseconds{1'000};
            } else if (patience_left() <= milliseconds{0}) {
                return unreachable(answer);
            } else if (answer.timed_out) {
                before_next = milliseconds{0};
            } else {
                before_next = std::min(pause, patience_left());
                pause = std::min(2 * pause, milliseconds{8'000});
            }
            if (!rest(before_next)) return cancelled();
        }
        return unreachable({});
    }

    void close(const Session& session, const char* status) {
        const std::string asked = "{\"gsid\":" + json_string(session.gsid) + ",\"status\":" + json_string(status) + "}";
        send(std::string{game_session} + "closeGsid", asked, session.location, short_timeout, false);
    }

    Answer post(const std::string& path, const std::string& asked) const {
        return send(path, asked, "", short_timeout, true);
    }

    // The fields of a request, as the inside of a JSON object.
    std::string fields() const {
        std::string asked = "\"app_id\":" + std::to_string(options_.app_id);
        if (!options_.factor.empty()) asked += ",\"factor\":" + json_string(options_.factor);
        if (options_.code) asked += ",\"code\":\"1\"";
        if (options_.qr) asked += ",\"qr\":\"1\"";
        for (const auto& [name, value] : options_.more) asked += "," + json_string(name) + ":" + json_string(value);
        return asked;
    }

    // Patience begins again: what came before was the game's own work.
    void restart_patience() { answered_ = Clock::now(); }

    bool is_cancelled() const { return options_.cancel && options_.cancel->load(); }

    void tell(const std::string& state) {
        if (state.empty() || state == state_) return;
        state_ = state;
        if (options_.on_state) options_.on_state(state);
    }

private:
    static std::string location_in(const std::string& header) {
        const auto at = header.find("location=");
        if (at == header.npos) return "";
        const auto value = header.substr(at + 9, header.find('&', at) - at - 9);
        return only(value, "._~%+/=-") ? value : "";
    }

    // The end, or nothing and how long to wait before the next poll.
    std::optional<Result> judge(const Answer& answer, long& seconds) {
        const std::string status = text_of(answer.members, "status");
        if (answer.cancelled) return cancelled();
        if (answer.http == 429) {
            seconds = seconds_of(answer.retry_after, 60);
            return seconds > longest_pause ? std::optional{refused(answer)} : std::nullopt;
        }
        if (answer.http == 403 || (status == "ERROR" && answer.http < 500)) {  // 5xx may pass
            tell(text_of(answer.members, "state"));
            return refused(answer);
        }
        if (answer.http != 200) return std::nullopt;
        if (status == "RETRY") {
            tell(text_of(answer.members, "state"));
            const auto delay = answer.members.find("delay");
            seconds = delay == answer.members.end() ? 1 : seconds_of(delay->second.text, 1);
        }
        if (status == "CANCELLED") {
            tell("cancelled");
            return cancelled();
        }
        if (status != "OK") return std::nullopt;
        tell("confirmed");
        return signed_in(answer);
    }

public:
    static Result signed_in(const Answer& answer) {
        Result result;
        result.outcome = Outcome::ok;
        result.user_id = text_of(answer.members, "user_id");
        result.nick = text_of(answer.members, "nick");
        result.jwt = text_of(answer.members, "jwt");
        result.token = text_of(answer.members, "token");
        result.body = answer.body;
        return result;
    }

    static Result refused(const Answer& answer) {
        Result result;
        result.outcome = Outcome::refused;
        result.error = text_of(answer.members, "error");
        result.reason = text_of(answer.members, "reason");
        result.public_text = text_of(answer.members, "public_text");
        result.until = time_of(answer.members, "until");
        return result;
    }

    static Result unreachable(const Answer& answer) {
        Result result;
        result.error = answer.error.empty() ? "HTTP " + std::to_string(answer.http) : answer.error;
        return result;
    }

    static Result cancelled() {
        Result result;
        result.outcome = Outcome::cancelled;
        return result;
    }

private:
    // False once the game has cancelled.
    bool rest(milliseconds time) const {
        const auto until = Clock::now() + time;
        while (!is_cancelled() && Clock::now() < until) {
            const auto left = std::chrono::duration_cast<milliseconds>(until - Clock::now()) + milliseconds{1};
            std::this_thread::sleep_for(std::min(left, cancel_seen_within));
        }
        return !is_cancelled();
    }

    milliseconds patience_left() const {
        return std::chrono::duration_cast<milliseconds>(answered_ + options_.patience - Clock::now());
    }

    Answer send(const std::string& path, const std::string& body, const std::string& location, milliseconds timeout,
                bool cancellable) const {
        Answer answer;
        const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> easy{curl_easy_init(), curl_easy_cleanup};
        const std::unique_ptr<CURLM, decltype(&curl_multi_cleanup)> multi{curl_multi_init(), curl_multi_cleanup};
        const std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)> headers{
            curl_slist_append(nullptr, "Content-Type: application/json"), curl_slist_free_all};
        if (!easy || !multi || !headers) {
            answer.error = "out of memory";
            return answer;
        }
        const std::string address = base_ + path + (location.empty() ? "" : "?location=" + location);
        timeout = std::min(timeout, std::max(patience_left(), least_timeout));
        CURL* const curl = easy.get();
        curl_easy_setopt(curl, CURLOPT_URL, address.c_str());
        curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, static_cast<long>(body.size()));
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body.c_str());
        curl_easy_setopt(curl, CURLOPT_USERAGENT, "gatehouse-login/1 (C++)");
        curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(timeout.count()));
        curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
        curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 1L);
        curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 2L);
        if (starts_with(base_, "http:")) curl_easy_setopt(curl, CURLOPT_PROXY, "");  // none leads to this machine
        curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, keep_body);
        curl_easy_setopt(curl, CURLOPT_WRITEDATA, &answer);
        curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, keep_header);
        curl_easy_setopt(curl, CURLOPT_HEADERDATA, &answer);
        curl_multi_add_handle(multi.get(), curl);
        finish(answer, multi.get(), curl, cancellable);
        curl_multi_remove_handle(multi.get(), curl);
        answer.members = Json::object(answer.body).value_or(Object{});
        return answer;
    }

    void finish(Answer& answer, CURLM* multi, CURL* curl, bool cancellable) const {
        int running = 1;
        while (running != 0) {
            if (cancellable && is_cancelled()) {
                answer.cancelled = true;
                return;
            }
            if (curl_multi_perform(multi, &running) != CURLM_OK) break;
            if (running != 0) {
                curl_multi_poll(multi, nullptr, 0, static_cast<int>(cancel_seen_within.count()), nullptr);
            }
        }
        int left = 0;
        const CURLMsg* const message = curl_multi_info_read(multi, &left);
        const CURLcode code = message == nullptr ? CURLE_FAILED_INIT : message->data.result;
        answer.timed_out = code == CURLE_OPERATION_TIMEDOUT;
        if (code != CURLE_OK) {
            answer.error = curl_easy_strerror(code);
            answer.body.clear();
            return;
        }
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &answer.http);
    }

    std::string base_;
    const Options& options_;
    Clock::time_point answered_ = Clock::now();
    std::string state_;
};

}  // namespace detail

// Opens the system browser. No shell ever sees the address.
inline bool open_browser(const std::string& url) {
    if (!detail::is_address(url, true)) return false;
#ifdef _WIN32
    const std::wstring wide{url.begin(), url.end()};
    const auto opened = ShellExecuteW(nullptr, L"open", wide.c_str(), nullptr, nullptr, SW_SHOWNORMAL);
    return reinterpret_cast<INT_PTR>(opened) > 32;
#else
#ifdef __APPLE__
    std::string opener = "open";
#else
    std::string opener = "xdg-open";
#endif
    std::string address = url;
    char* const arguments[] = {opener.data(), address.data(), nullptr};
    posix_spawn_file_actions_t quiet;
    posix_spawn_file_actions_init(&quiet);
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        posix_spawn_file_actions_addopen(&quiet, stream, "/dev/null", O_RDWR, 0);
    }
    posix_spawnattr_t how;
    posix_spawnattr_init(&how);
#ifdef POSIX_SPAWN_SETSID
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSID);  // the browser outlives the game
#endif
    pid_t child = 0;
    const bool started = posix_spawnp(&child, opener.c_str(), &quiet, &how, arguments, environ) == 0;
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&quiet);
    if (started) std::thread{[child] { waitpid(child, nullptr, 0); }}.detach();
    return started;
#endif
}

// The secret of this device. It is made at the first call, in a file that only the player can read. Throws
// std::runtime_error when the file cannot be written.
inline std::string device_factor(const std::string& path) {
    constexpr std::size_t length = 64;
    std::string factor;
    if (std::ifstream kept{path, std::ios::binary}; kept) std::getline(kept, factor);
    if (factor.size() == length && detail::only(factor, "0123456789abcdef")) return factor;
    factor.clear();
    std::random_device random;
    while (factor.size() < length) {
        for (unsigned bits = random(), digit = 0; digit < 8; ++digit, bits >>= 4) {
            factor += "0123456789abcdef"[bits & 15];
        }
    }
    const std::string made = path + "." + factor.substr(0, 8);  // renamed, so that the file is never half-written
#ifdef _WIN32
    std::ofstream file{made, std::ios::binary};
    file << factor;
    file.close();
    const bool written = bool(file) && MoveFileExA(made.c_str(), path.c_str(), MOVEFILE_REPLACE_EXISTING);
#else
    const int file = open(made.c_str(), O_WRONLY | O_CREAT | O_EXCL, S_IRUSR | S_IWUSR);
    const bool stored = file >= 0 && write(file, factor.data(), length) == static_cast<ssize_t>(length);
    const bool written = file >= 0 && close(file) == 0 && stored && std::rename(made.c_str(), path.c_str()) == 0;
#endif
    if (!written) throw std::runtime_error{"cannot write " + path};
    return factor;
}

namespace detail {

// A sign-in through the browser; `more` are further fields, as the inside of a JSON object.
inline Result sign_in_with_browser(Client& client, const Options& options, const std::string& more) {
    Result result;
    const auto session = client.enter("{" + client.fields() + more + "}", result);
    if (!session) return result;
    try {
        if (options.show) {
            options.show(*session);
        } else {
            open_browser(session->url);
        }
        client.tell("waiting");
        result = client.wait(*session);
    } catch (...) {  // what the game threw ends the session too
        client.close(*session, "Error");
        throw;
    }
    // A refused session has ended by itself.
    if (result.outcome != Outcome::refused) client.close(*session, result.outcome == Outcome::ok ? "Success" : "Error");
    return result;
}

}  // namespace detail

// Throws std::invalid_argument when base_url is neither https nor on this machine; all else is told by the outcome.
inline Result sign_in(const std::string& base_url, const Options& options = {}) {
    detail::Client client{base_url, options};
    return detail::sign_in_with_browser(client, options, "");
}

}  // namespace gatehouse

#endif
