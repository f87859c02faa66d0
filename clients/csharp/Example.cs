// mcs -r:System.Net.Http Example.cs GatehouseLogin.cs && mono Example.exe
using System;

public static class Example
{
    public static int Main(string[] arguments)
    {
        var options = new GatehouseOptions { AppId = long.Parse(arguments[1]), Factor = GatehouseLogin.DeviceFactor("device") };
        options.OnState = state => Console.WriteLine("... " + state);
        GatehouseResult result = GatehouseLogin.SignInAsync(arguments[0], options).GetAwaiter().GetResult();
        Console.WriteLine(result.Outcome == GatehouseOutcome.Ok ? "Hello, " + result.Nick : result.ToString());
        return result.Outcome == GatehouseOutcome.Ok ? 0 : 1;
    }
}
