// A game for the tests: follows its arguments and prints what the client reports.
#include <filesystem>
#include <iostream>
#include <sstream>

#include "gatehouse_guest.hpp"
#include "gatehouse_login.hpp"

using namespace gatehouse;

static void say(const std::string& name, const std::string& told) { std::cout << name << " " << told << std::endl; }

using Words = std::map<std::string, std::string>;

static Result act(const std::string& action, const std::string& base_url, Words& asked, const Options& options) {
    DeviceKey key{};
    sodium_hex2bin(key.data(), key.size(), asked["key"].data(), asked["key"].size(), nullptr, nullptr, nullptr);
    if (action == "guest") return sign_in_guest(base_url, key, options);
    if (action == "platform") return sign_in_platform(base_url, "steam", asked["ticket"], options);
    if (action == "code") return enter_code(base_url, asked["request_id"], asked["otp"], options);
    return action == "upgrade" ? upgrade(base_url, key, options) : sign_in(base_url, options);
}

static void play(const std::string& action, const std::string& base_url, Words& asked, const Options& options) {
    try {
        const Result result = act(action, base_url, asked, options);
        if (!result.request_id.empty()) asked["request_id"] = result.request_id;
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
    if (sodium_init() < 0) return 1;
    Words asked;
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
    if (asked.count("cancel") != 0) {
        std::thread{[cancel = options.cancel, file = asked["cancel"]] {
            while (!std::filesystem::exists(file)) std::this_thread::sleep_for(std::chrono::milliseconds{20});
            cancel->store(true);
        }}.detach();
    }
    options.on_state = [](const std::string& state) { say("state", state); };
    std::istringstream base_urls{words[1]};
    for (std::string base_url; std::getline(base_urls, base_url, ',');) {
        std::istringstream actions{asked.count("do") != 0 ? asked["do"] : "sign_in"};
        for (std::string action; std::getline(actions, action, ',');) {
            play(action, base_url, asked, options);
        }
    }
    say("end", "");
}
