// A game for the tests: follows its arguments and prints what the client reports.
using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Net.Http;
using System.Text;
using System.Threading;
using System.Threading.Tasks;

public static class Driver
{
    private static string requestId = ""; // of the last refusal

    public static void Main(string[] words)
    {
        Console.OutputEncoding = new UTF8Encoding(false);
        var asked = words.Skip(1).Select(word => word.Split(new[] { '=' }, 2)).ToDictionary(pair => pair[0], pair => pair[1]);
        Func<string, double, double> number = (name, otherwise) =>
            asked.ContainsKey(name) ? double.Parse(asked[name]) : otherwise;
        var cancel = new CancellationTokenSource();
        var options = new GatehouseOptions
        {
            AppId = (long)number("app_id", 0),
            Factor = asked.ContainsKey("factor") ? asked["factor"] : "",
            Code = asked.ContainsKey("code"),
            Qr = asked.ContainsKey("qr"),
            PollTimeout = TimeSpan.FromSeconds(number("poll_timeout", 40)),
            Patience = TimeSpan.FromSeconds(number("patience", 60)),
        };
        if (asked.ContainsKey("distr"))
        {
            options.More["distr"] = asked["distr"];
        }
        if (!asked.ContainsKey("default"))
        {
            options.Show = session => Show(session, asked.ContainsKey("browser"));
        }
        options.OnState = state => Say("state", state);
        WarmUp();
        var watching = new Timer(_ => { if (asked.ContainsKey("cancel") && File.Exists(asked["cancel"])) cancel.Cancel(); }, null, 0, 20);
        foreach (string baseUrl in words[0].Split(','))
        {
            foreach (string action in (asked.ContainsKey("do") ? asked["do"] : "sign_in").Split(','))
            {
                Play(Act(action, baseUrl, asked, options, cancel.Token));
            }
        }
        watching.Dispose();
        Say("end", "");
    }

    // Mono compiles all of HttpClient for its first request, on a busy machine which takes longer than the timeout of some tests.
    private static void WarmUp()
    {
        using (var http = new HttpClient(new HttpClientHandler { UseProxy = false }))
        using (var content = new StringContent("{}", Encoding.UTF8, "application/json"))
        {
            try
            {
                http.PostAsync("http://127.0.0.1:1/", content).GetAwaiter().GetResult().Dispose();
            }
            catch (HttpRequestException)
            {
                // Nothing listens there.
            }
        }
    }

    private static Task<GatehouseResult> Act(
        string action, string baseUrl, Dictionary<string, string> asked, GatehouseOptions options, CancellationToken cancel)
    {
        string hex = asked.ContainsKey("key") ? asked["key"] : "";
        byte[] key = Enumerable.Range(0, hex.Length / 2).Select(at => Convert.ToByte(hex.Substring(2 * at, 2), 16)).ToArray();
        switch (action)
        {
            case "guest":
                return GatehouseLogin.SignInGuestAsync(baseUrl, key, options, cancel);
            case "platform":
                return GatehouseLogin.SignInPlatformAsync(baseUrl, "steam", asked["ticket"], options, cancel);
            case "code":
                return GatehouseLogin.EnterCodeAsync(baseUrl, requestId, asked["otp"], options, "", cancel);
            case "upgrade":
                return GatehouseLogin.UpgradeAsync(baseUrl, key, options, cancel);
            default:
                return GatehouseLogin.SignInAsync(baseUrl, options, cancel);
        }
    }

    private static void Play(Task<GatehouseResult> signIn)
    {
        try
        {
            GatehouseResult result = signIn.GetAwaiter().GetResult();
            requestId = result.RequestId == "" ? requestId : result.RequestId;
            Say("outcome", result.Outcome.ToString().ToLowerInvariant());
            Say("user_id", result.UserId);
            Say("nick", result.Nick);
            Say("jwt", result.Jwt);
            Say("error", result.Error);
            Say("ban", result.Reason + " " + result.PublicText + " " + result.Until);
            Say("printed", result.ToString());
        }
        catch (ArgumentException)
        {
            Say("outcome", "invalid");
        }
    }

    private static void Show(GatehouseSession session, bool browser)
    {
        Say("link", session.Url);
        Say("code", session.Code);
        Say("qr", session.Qr.Substring(0, Math.Min(session.Qr.Length, 26)));
        if (browser)
        {
            GatehouseLogin.OpenBrowser(session.Url);
        }
    }

    private static void Say(string name, string told)
    {
        Console.WriteLine(name + " " + told);
        Console.Out.Flush();
    }
}
