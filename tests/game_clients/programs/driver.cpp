// A game for the tests: follows its arguments and prints what the client reports.
#include <iostream>
#include <sstream>

#include "gatehouse_login.hpp"

using namespace gatehouse;

static void say(const std::string& name, const std::string& told) { std::cout << name << " " << told << std::endl; }

static void play(const std::string& base_url, const Options& options) {
    try {
        const Result result = sign_in(base_url, options);
        static const char* const outcomes[] = {"ok", "refused", "cancelled", "unreachable"};
        say("outcome", outcomes[static_cast<int>(result.outcome)]);
        say("user_id", result.user_id);
        say("nick", result.nick);
        say("jwt", result.jwt);
        say("error", result.error);
        say("ban", result.reason + " " + result.public_text + " " + std::to_string(result.until));
    } catch (const std::invalid_argument&) {
        say("outcome", "invalid");
    }
}

int main(int count, char** words) {
    curl_global_init(CURL_GLOBAL_DEFAULT);
    std::map<std::string, std::string> asked;
    for (int at = 2; at < count; ++at) {
        const std::string word = words[at];
        const auto equals = word.find('=');
        asked[word.substr(0, equals)] = word.substr(equals + 1);
    }
    const auto number = [&](const char* name, long otherwise) {
        return asked.count(name) != 0 ? std::stol(asked[name]) : otherwise;
    };
    Options options;
    options.app_id = number("app_id", 0);
    options.factor = asked["factor"];
    options.code = asked.count("code") != 0;
    options.qr = asked.count("qr") != 0;
    options.poll_timeout = std::chrono::seconds{number("poll_timeout", 40)};
    options.patience = std::chrono::seconds{number("patience", 60)};
    options.cancel = std::make_shared<std::atomic<bool>>(false);
    if (asked.count("distr") != 0) options.more["distr"] = asked["distr"];
    if (asked.count("default") == 0) {
        options.show = [&](const Session& session) {
            say("link", session.url);
            say("code", session.code);
            say("qr", session.qr.substr(0, 26));
            if (asked.count("browser") != 0) open_browser(session.url);
        };
    }
    options.on_state = [&, cancel = options.cancel](const std::string& state) {
        say("state", state);
        if (state != asked["cancel_on"]) return;
        std::thread{[cancel] {
            std::this_thread::sleep_for(std::chrono::milliseconds{300});
            cancel->store(true);
        }}.detach();
    };
    std::istringstream base_urls{words[1]};
    for (std::string base_url; std::getline(base_urls, base_url, ',');) play(base_url, options);
    say("end", "");
}
