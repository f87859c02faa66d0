// A game for the tests: follows its arguments and prints what the package reports.
using System;
using System.Collections.Generic;
using System.Linq;
using System.Text;
using System.Threading;
using System.Threading.Tasks;
using Gatehouse;
using UnityEngine;

public static class UnityDriver
{
    private static Dictionary<string, string> asked;
    private static readonly CancellationTokenSource Cancel = new CancellationTokenSource();

    public static void Main(string[] words)
    {
        Console.OutputEncoding = new UTF8Encoding(false);
        asked = words.Skip(1).Select(word => word.Split(new[] { '=' }, 2)).ToDictionary(pair => pair[0], pair => pair[1]);
        GatehouseClient client = new GameObject("game").AddComponent<GatehouseClient>();
        client.AppId = (long)Number("app_id", 0);
        client.StateChanged += OnState;
        Task playing = Play(client, words[0].Split(','));
        Engine.RunFramesUntil(() => playing.IsCompleted);
        playing.GetAwaiter().GetResult();
        Say("end", "");
    }

    private static async Task Play(GatehouseClient client, string[] baseUrls)
    {
        foreach (string baseUrl in baseUrls)
        {
            client.BaseUrl = baseUrl;
            try
            {
                Report(await client.SignInAsync(Options(), Cancel.Token));
            }
            catch (ArgumentException)
            {
                Say("outcome", "invalid");
            }
        }
    }

    private static GatehouseOptions Options()
    {
        var options = new GatehouseOptions
        {
            Factor = asked.ContainsKey("factor") ? asked["factor"] : "",
            Code = asked.ContainsKey("code"),
            Qr = asked.ContainsKey("qr"),
            PollTimeout = (float)Number("poll_timeout", 40),
            Patience = (float)Number("patience", 60),
        };
        if (asked.ContainsKey("distr"))
        {
            options.More["distr"] = asked["distr"];
        }
        if (!asked.ContainsKey("default"))
        {
            options.Show = Show;
        }
        return options;
    }

    private static void Report(GatehouseResult result)
    {
        Say("outcome", result.Outcome.ToString().ToLowerInvariant());
        Say("user_id", result.UserId);
        Say("nick", result.Nick);
        Say("jwt", result.Jwt);
        Say("error", result.Error);
        Say("ban", result.Reason + " " + result.PublicText + " " + result.Until);
        Say("printed", result.ToString());
    }

    private static void Show(GatehouseSession session)
    {
        Say("link", session.Url);
        Say("code", session.Code);
        Say("qr", session.Qr.Substring(0, Math.Min(session.Qr.Length, 26)));
        if (asked.ContainsKey("browser"))
        {
            Application.OpenURL(session.Url);
        }
    }

    private static void OnState(string state)
    {
        Say("state", state);
        if (asked.ContainsKey("cancel_on") && asked["cancel_on"] == state)
        {
            Cancel.CancelAfter(300);
        }
    }

    private static double Number(string name, double otherwise)
    {
        return asked.ContainsKey(name) ? double.Parse(asked[name]) : otherwise;
    }

    private static void Say(string name, string told)
    {
        Console.WriteLine(name + " " + told);
        Console.Out.Flush();
    }
}
