// g++ -std=c++17 example.cpp -o example -lcurl -pthread
#include <iostream>

#include "gatehouse_login.hpp"

int main(int, char** arguments) {
    gatehouse::Options options;
    options.app_id = std::stoll(arguments[2]);
    options.factor = gatehouse::device_factor("device");
    options.on_state = [](const std::string& state) { std::cout << "... " << state << std::endl; };
    const gatehouse::Result result = gatehouse::sign_in(arguments[1], options);
    if (result.outcome == gatehouse::Outcome::ok) std::cout << "Hello, " << result.nick << std::endl;
    return result.outcome == gatehouse::Outcome::ok ? 0 : 1;
}
